"""States, their differences, figures and events as a person reads them, and a state as a form and back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agents.pages import differences
from agents.pages import edits as editors
from agents.pages.agents import state_fields
from agents.pages.run import offered_moves as moves
from agents.pages.run.marks import format_duration
from approvals.audit import event_words
from approvals.forms.texts import as_json
from approvals.impact import Impact, ImpactVerdict
from approvals.impact.result import ImpactRow
from approvals.schema import redact
from checkpoints.models import Checkpoint
from checkpoints.runs.plans import PlanSpec, StepSpec
from checkpoints.values import patch


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(-3, "< 1 ms"), (0.0072, "7 ms"), (0.0999, "0.1 s"), (0.4, "0.4 s"),
     (59.9, "59.9 s"), (60, "1 min"), (1298, "21 min 38 s"),
     (11_100, "3 h 5 min"), (180_000, "2 d 2 h")],
)  # fmt: skip
def test_a_duration_has_at_most_two_units(seconds: float, said: str) -> None:
    assert format_duration(timedelta(seconds=seconds)) == said


@pytest.mark.parametrize(
    ("kind", "data", "said"),
    [
        ("gate.decided", {"kind": "approve", "step": "review"}, "approved “Review”"),
        ("gate.opened", {"kind": "recovery", "step": "pay"}, "asks how to go on at “Pay”"),
        ("step.failed", {"step": "propose", "attempt": 2}, "failed at “Propose”, attempt 2"),
        ("effect.done", {}, "performed "),
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
        ({"a": None}, {"a": {"b": 1}}, [("/a/b", "added")]),
        ({"a": {"b": 1}}, {"a": None}, [("/a/b", "removed")]),
        ({"a": 0}, {"a": {"b": 1}}, [("/a", "changed")]),
        ({}, {"a": {}}, [("/a", "added")]),
        ({}, {"a": {"x/y": {"~": 1}}}, [("/a/x~1y/~0", "added")]),
        ({}, {"a": {str(n): n for n in range(25)}}, [("/a", "added")]),
    ],
)
def test_an_object_that_came_or_went_is_told_leaf_by_leaf(before: Any, after: Any, rows: list[tuple[str, str]]) -> None:
    told = list(differences.expand_objects(patch.list_changes(before, after)))
    assert [(row["pointer"], row["kind"]) for row in told] == rows


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


PLAN = PlanSpec(
    "robo", "1",
    state_schema={
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"type": "object", "properties": {"x": {"type": "array", "items": {"type": "integer"}}}},
            "c": {}, "d": {"type": "string"},
        },
    },
    steps=(StepSpec("first", reads=("a",), writes=("b",)), StepSpec("second", reads=("b", "d")), StepSpec("third")),
)  # fmt: skip
STATE = {"a": 1, "b": {"x": [1, 2]}, "d": "é"}
VEIL = redact.veil_marks(PLAN.state_schema)


def drawn(posted: dict[str, str] | None = None, faults: Any = ()) -> list[editors.FieldEditor]:
    return editors.list_editors(PLAN, editors.draw_form(PLAN, STATE, posted or {}, VEIL, faults), STATE, "second", VEIL)


@pytest.mark.parametrize(
    ("posted", "expected"),
    [
        ({"a": " 2 "}, {"a": 2, "b": {"x": [1, 2]}, "d": "é"}),
        ({"b/x/0": "3"}, {"a": 1, "b": {"x": [3, 2]}, "d": "é"}),
        ({"c": "null"}, {"a": 1, "b": {"x": [1, 2]}, "c": None, "d": "é"}),
        ({"c": ""}, STATE),
    ],
)
def test_what_is_typed_is_a_patch_of_the_fields_that_differ(posted: dict[str, str], expected: dict[str, Any]) -> None:
    found = editors.read_state(PLAN, STATE, {f"state/{name}": text for name, text in posted.items()}, VEIL)
    assert patch.are_same(found.state, expected)
    assert patch.are_same(patch.apply(found.patch, STATE), expected)


def test_an_item_that_is_taken_out_and_one_that_moved_are_small_patches() -> None:
    assert editors.read_state(PLAN, STATE, {"state!order/b/x": "/1"}, VEIL).patch == [
        {"op": "remove", "path": "/b/x/0"}
    ]
    assert editors.read_state(PLAN, STATE, {"state!order/b/x": "/1/0"}, VEIL).state["b"] == {"x": [2, 1]}


def test_what_cannot_be_read_is_named_by_its_place_and_changes_nothing() -> None:
    posted = {"state/a": "{", "state/b/x/1": "many", "state/c": "[NaN]"}
    found = editors.read_state(PLAN, STATE, posted, VEIL)
    assert sorted(fault["pointer"] for fault in found.faults) == ["/a", "/b/x/1", "/c"]
    assert found.patch == []
    assert [each.name for each in drawn(posted, found.faults) if each.unfolded and each.changed] == ["b", "a", "c"]


def test_a_state_without_a_schema_is_one_text_of_json_and_has_to_stay_an_object() -> None:
    bare = PlanSpec("robo", "1", state_schema={}, steps=(StepSpec("first"),))
    (found,) = editors.list_editors(bare, editors.draw_form(bare, STATE, {}, redact.OPEN), STATE, "first", redact.OPEN)
    assert (found.name, found.node.kind) == ("", "json")
    assert editors.read_state(bare, STATE, {"state": '{"a": 1}'}, redact.OPEN).state == {"a": 1}
    wrong = editors.read_state(bare, STATE, {"state": "[]"}, redact.OPEN)
    assert (wrong.patch, [each["pointer"] for each in wrong.faults]) == ([], [""])


def test_what_cannot_be_seen_is_written_as_an_escape_and_read_back_as_it_was() -> None:
    value = {"text": "a\u202eb\u200bc\x7f\x00d\U000e0041\u2028é😀"}
    text = as_json(value)
    assert all(ord(each) >= 32 or each == "\n" for each in text)
    assert not set(text) & {"\u202e", "\u200b", "\x7f", "\U000e0041", "\u2028"}
    assert "é😀" in text
    assert editors.read_state(PLAN, {}, {"state/c": text}, VEIL).state == {"c": value}


def row(step: str, verdict: ImpactVerdict, **more: Any) -> ImpactRow:
    return ImpactRow(step=step, kind="effect", verdict=verdict, **more)


def test_the_button_says_what_it_does() -> None:
    undone = [row(step, ImpactVerdict.UNDONE) for step in ("pay", "book")]
    perhaps, again = row("fee", ImpactVerdict.MAY_UNDONE), row("tell", ImpactVerdict.CANNOT, again=True)
    for rows, said in (
        ([row("pay", ImpactVerdict.WILL)], "Rewind"), (undone, "Rewind, undoing 2 effects"),
        ([undone[0], perhaps], "Rewind, undoing “Pay”, perhaps undoing “Fee”"), ([again], "Rewind, repeating “Tell”"),
    ):  # fmt: skip
        assert moves.button_words("Rewind", Impact(rows=tuple(rows))) == said


@pytest.mark.parametrize(
    ("kind", "effect", "then", "before", "said"),
    [
        ("step", False, "next", 3, ["After It, keeping what it wrote", "Before It, and run it again"]),
        ("step", True, "next", 3, ["After It, keeping what it did", "Before It, and run it again"]),
        ("gate", False, "next", 3, ["After It, keeping its answer", "Before It, and ask again"]),
        ("silent gate", False, "next", 3, ["After It", "Before It, and check again"]),
        ("step", False, "", 3, ["Before It, and run it again"]),
        ("step", False, "next", 0, ["After It, keeping what it wrote"]),
        ("input", False, "next", 0, ["From this state, go on with Next"]),
        ("rewind", False, "next", 3, ["From this state, go on with Next"]),
        ("step", False, "", 0, []),
    ],
)
def test_the_ways_to_rewind_at_a_checkpoint(kind: str, effect: bool, then: str, before: int, said: list[str]) -> None:
    plan = PlanSpec("agent", "1", steps=(StepSpec("it", kind="effect" if effect else "step"),))
    asked, kind = not kind.startswith("silent"), kind.removeprefix("silent ")
    saved = Checkpoint(seq=4, kind=kind, step="it", next_step=then)
    found = moves.rewind_targets(saved, plan, before=before, asked=asked)
    assert [f"{way.label} {way.step}{', ' + way.rest if way.rest else ''}" for way in found] == said
    assert [way.to for way in found] == [4 if way.place == "after" else before for way in found]
