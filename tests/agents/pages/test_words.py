"""States, their differences, figures and events as a person reads them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agents.pages import differences
from agents.pages.agents import state_fields
from agents.pages.checkpoint import members
from agents.pages.run.inspector import format_size
from agents.pages.run.marks import format_duration
from approvals.audit import event_words
from checkpoints.errors import ValueRefused
from checkpoints.values import json_pointer, patch


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(-3, "< 1 ms"), (0.0072, "7 ms"), (0.0999, "0.1 s"), (0.4, "0.4 s"),
     (59.9, "59.9 s"), (60, "1 min"), (1298, "21 min 38 s"),
     (11_100, "3 h 5 min"), (180_000, "2 d 2 h")],
)  # fmt: skip
def test_a_duration_has_at_most_two_units(seconds: float, said: str) -> None:
    assert format_duration(timedelta(seconds=seconds)) == said


@pytest.mark.parametrize(("count", "said"), [(0, "0 B"), (999, "999 B"), (16_900, "16.9 kB"), (3_200_000, "3.2 MB")])
def test_a_size_is_decimal(count: int, said: str) -> None:
    assert format_size(count) == said


@pytest.mark.parametrize(
    ("kind", "data", "said"),
    [
        ("gate.decided", {"kind": "approve", "step": "review"}, "approved “Review”"),
        ("gate.decided", {"kind": "reject", "step": "review"}, "rejected “Review”"),
        ("gate.opened", {"kind": "review", "step": "review"}, "asks for a decision at “Review”"),
        ("gate.opened", {"kind": "recovery", "step": "pay"}, "asks how to go on at “Pay”"),
        ("step.failed", {"step": "propose", "attempt": 2}, "failed at “Propose”, attempt 2"),
        ("effect.done", {}, "performed "),
        (
            "retention.pruned",
            {"first": 2, "last": 9, "count": 5, "policy": "short"},
            "removed checkpoints 2 to 9, 5 in all, under the retention policy short",
        ),
        (
            "retention.pruned",
            {"first": 9, "last": 9, "count": 1, "policy": "short"},
            "removed checkpoint 9 under the retention policy short",
        ),
        ("retention.changed", {"agent": "refunds"}, "changed what is kept of the runs of refunds"),
        ("retention.changed", {"agent": ""}, "changed what is kept of every agent without a policy of its own"),
        ("retention.ordered", {"checkpoints": 3, "signals_and_waits": 0}, "ordered a prune; checkpoints that go: 3"),
        (
            "retention.ordered",
            {"checkpoints": 3, "signals_and_waits": 4},
            "ordered a prune; checkpoints that go: 3, signals and waits: 4",
        ),
        (
            "retention.finished",
            {"checkpoints": 0, "signals_and_waits": 4},
            "finished a prune; checkpoints removed: 0, signals and waits: 4",
        ),
        (
            "retention.stopped",
            {"checkpoints": 1, "signals_and_waits": 2},
            "stopped a prune; checkpoints removed by then: 1, signals and waits: 2",
        ),
        ("something.new", {"step": "{0.__class__}"}, ""),
        ("effect.done", {"step": "{0.__class__}"}, "performed “{0 class }”"),
    ],
)
def test_an_event_says_who_did_what(kind: str, data: dict[str, Any], said: str) -> None:
    told = event_words.tell(at=datetime(2026, 3, 2, tzinfo=UTC), kind=kind, who="Ann", data=data)
    assert (told.who, told.what) == ("Ann", said)


@pytest.mark.parametrize(
    ("before", "after", "rows"),
    [
        ({"a": 1}, {"a": 2}, [("/a", "changed")]),
        ({}, {"a": {"b": 1, "c": {"d": 2}}}, [("/a/b", "added"), ("/a/c/d", "added")]),
        ({"a": {"b": 1}}, {}, [("/a/b", "removed")]),
        ({"a": None}, {"a": {"b": 1}}, [("/a/b", "added")]),
        ({"a": {"b": 1}}, {"a": None}, [("/a/b", "removed")]),
        ({"a": 0}, {"a": {"b": 1}}, [("/a", "changed")]),
        ({}, {"a": {}}, [("/a", "added")]),
        ({}, {"a": [1, 2]}, [("/a", "added")]),
        ({}, {"a": {"x/y": {"~": 1}}}, [("/a/x~1y/~0", "added")]),
        ({}, {"a": {str(n): n for n in range(25)}}, [("/a", "added")]),
    ],
)
def test_an_object_that_came_or_went_is_told_leaf_by_leaf(before: Any, after: Any, rows: list[tuple[str, str]]) -> None:
    told = list(differences.expand_objects(patch.list_changes(before, after)))
    assert [(row["pointer"], row["kind"]) for row in told] == rows


def test_each_leaf_carries_its_value_on_the_side_where_it_is() -> None:
    (added,) = differences.expand_objects(patch.list_changes({}, {"a": {"b": 1}}))
    (removed,) = differences.expand_objects(patch.list_changes({"a": {"b": 1}}, {}))
    assert (added["after"], removed["before"]) == (1, 1)


@pytest.mark.parametrize(("pointer", "found"), [("", {"a": [{"b/c": 3}]}), ("/a/0/b~1c", 3)])
def test_a_pointer_finds_its_value(pointer: str, found: Any) -> None:
    assert json_pointer.find_value({"a": [{"b/c": 3}]}, pointer) == found


@pytest.mark.parametrize("pointer", ["/b", "/a/1", "/a/-1", "/a/x", "/a/0/b~1c/d"])
def test_a_pointer_to_nothing_is_refused(pointer: str) -> None:
    with pytest.raises(ValueRefused):
        json_pointer.find_value({"a": [{"b/c": 3}]}, pointer)


def test_a_page_of_a_list_keeps_its_places() -> None:
    assert members(["a", "b", "c", "d"], 1, 2) == {"1": "b", "2": "c"}
    assert members({"x": 1, "y": 2, "z": 3}, 1, 9) == {"y": 2, "z": 3}


ITEM = {"description": "One line.", "type": "object"}


@pytest.mark.parametrize(
    ("part", "kind", "about"),
    [
        ({"$ref": "#/$defs/Item"}, "Item", "One line."),
        ({"type": "array", "items": {"$ref": "#/$defs/Item"}}, "list of Item", ""),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "text or nothing", ""),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, "text or whole number", ""),
        ({"type": "array", "items": True}, "list of anything", ""),
        ({"anyOf": 7, "type": "number"}, "number", ""),
        ({"$ref": 7, "description": ["so"]}, "anything", ""),
        (True, "anything", ""),
    ],
)
def test_a_field_is_told_in_a_word_or_two(part: Any, kind: str, about: str) -> None:
    [field] = state_fields({"type": "object", "properties": {"a": part}, "required": ["a"], "$defs": {"Item": ITEM}})
    assert (field.kind, field.about, field.required) == (kind, about, True)


@pytest.mark.parametrize("schema", [{}, {"properties": 7}, {"properties": {"a": {}}, "required": 7}])
def test_a_schema_of_the_wrong_types_has_a_table_all_the_same(schema: dict[str, Any]) -> None:
    assert [(field.name, field.required) for field in state_fields(schema)] in ([], [("a", False)])
