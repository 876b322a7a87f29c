"""The state as a form, and back: what was typed becomes a patch of the state that there is."""

from __future__ import annotations

from typing import Any

import pytest

from agents.presentation import editors, orders
from agents.presentation.editors import LARGEST
from approvals.forms.texts import as_json
from approvals.impact import Impact, Verdict
from approvals.impact.result import Row
from approvals.veils import OPEN
from checkpoints import patch
from checkpoints.plans import PlanSpec, StepSpec

PLAN = PlanSpec(
    "robo", "1", state_schema={"properties": {"a": {}, "b": {}, "c": {}}},
    steps=(StepSpec("first", reads=("a",), writes=("b",)), StepSpec("second", reads=("b", "d")), StepSpec("third")),
)  # fmt: skip
STATE = {"a": 1, "b": {"x": [1, 2]}, "d": "é"}


def typed(**texts: str) -> editors.Typed:
    return editors.read(STATE, texts, OPEN)


def test_what_the_steps_ahead_read_comes_first_in_their_order() -> None:
    found = editors.editors(PLAN, STATE, "second")
    assert [each.name for each in found] == ["b", "d", "a", "c"]
    assert [each.readers for each in found] == [("second",), ("second",), (), ()]
    assert [each.text for each in found] == ['{\n  "x": [\n    1,\n    2\n  ]\n}', '"é"', "1", ""]


def test_what_is_typed_back_unchanged_is_no_change() -> None:
    texts = {each.name: each.text or "" for each in editors.editors(PLAN, STATE, "first")}
    assert editors.read(STATE, texts, OPEN).patch == []
    assert not any(each.changed for each in editors.editors(PLAN, STATE, "first", texts))


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ({"a": " 2 "}, {"a": 2, "b": {"x": [1, 2]}, "d": "é"}),
        ({"a": "1.0"}, {"a": 1.0, "b": {"x": [1, 2]}, "d": "é"}),
        ({"b": '{"x":[1]}', "c": "null"}, {"a": 1, "b": {"x": [1]}, "c": None, "d": "é"}),
        ({"a": "  ", "c": ""}, {"b": {"x": [1, 2]}, "d": "é"}),
        ({"d": '"\\u00e9"'}, STATE),
    ],
)
def test_what_is_typed_is_a_patch_of_the_fields_that_differ(texts: dict[str, str], expected: dict[str, Any]) -> None:
    found = editors.read(STATE, texts, OPEN)
    assert patch.same(found.state, expected)
    assert patch.same(patch.apply(found.patch, STATE), expected)
    assert found.changed == {name for name in {*expected, *STATE} if not _same(expected, name)}


def _same(expected: dict[str, Any], name: str) -> bool:
    return name in expected and name in STATE and patch.same(expected[name], STATE[name])


def test_what_is_no_json_is_named_by_its_field_and_changes_nothing() -> None:
    found = typed(a="{", b='{"x": 1, "x": 2}', d="[NaN]")
    assert [fault["pointer"] for fault in found.faults] == ["/a", "/b", "/d/0"]
    assert found.patch == []
    shown = editors.editors(PLAN, STATE, "first", {"a": "{"}, found.faults)
    assert [(each.name, bool(each.faults), each.unfolded) for each in shown][:2] == [
        ("a", True, True),
        ("b", True, True),
    ]


def test_a_fault_is_told_at_its_field_with_the_place_inside() -> None:
    faults: list[Any] = [
        {"pointer": "/b/x/0", "message": "is no text"},
        {"pointer": "/b", "message": "is too much"},
        {"pointer": "/lost", "message": "is no field"},
        {"pointer": "", "message": "does not fit together"},
    ]
    assert list(editors.of_field(faults, "b")) == ["x, 0: is no text", "is too much"]
    assert editors.elsewhere(faults, ["a", "b", "c"]) == ["is no field", "does not fit together"]


def test_a_value_that_is_too_large_is_not_edited_here() -> None:
    (found,) = (each for each in editors.editors(PLAN, {"a": "x" * LARGEST}, "first") if each.name == "a")
    assert (found.text, found.unfolded) == (None, False)


def test_what_cannot_be_seen_is_written_as_an_escape_and_read_back_as_it_was() -> None:
    value = {"text": "a\u202eb\u200bc\x7f\x00d\U000e0041\u2028é😀"}
    text = as_json(value)
    assert all(ord(each) >= 32 or each == "\n" for each in text)
    assert not set(text) & {"\u202e", "\u200b", "\x7f", "\U000e0041", "\u2028"}
    assert "é😀" in text
    found = editors.read({}, {"a": text}, OPEN)
    assert found.state == {"a": value}


def row(step: str, verdict: Verdict, **more: Any) -> Row:
    return Row(step=step, kind="effect", verdict=verdict, **more)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ((), "Rewind"),
        ((row("pay", Verdict.WILL),), "Rewind"),
        ((row("pay", Verdict.UNDONE),), "Rewind, undoing pay"),
        ((row("pay", Verdict.UNDONE, title="1 payment"),), "Rewind, undoing 1 payment"),
        ((row("pay", Verdict.UNDONE), row("book", Verdict.UNDONE)), "Rewind, undoing 2 effects"),
        ((row("pay", Verdict.UNDONE), row("fee", Verdict.MAY_UNDONE)), "Rewind, undoing pay, perhaps undoing fee"),
        ((row("tell", Verdict.CANNOT, again=True),), "Rewind, doing tell once more"),
        ((row("tell", Verdict.CANNOT),), "Rewind"),
    ],
)
def test_the_button_says_what_it_does(rows: tuple[Row, ...], said: str) -> None:
    assert orders.commit("Rewind", Impact(rows=rows)) == said


@pytest.mark.parametrize(
    ("kind", "effect", "then", "before", "said"),
    [
        ("step", False, "next", 3, ["After it, keeping what it wrote", "Before it, and run it again"]),
        ("step", True, "next", 3, ["After it, keeping what it did", "Before it, and run it again"]),
        ("gate", False, "next", 3, ["After it, keeping its answer", "Before it, and ask again"]),
        ("reused", False, "next", 3, ["After it, keeping what it wrote", "Before it, and run it again"]),
        ("step", False, "", 3, ["Before it, and run it again"]),
        ("step", False, "next", 0, ["After it, keeping what it wrote"]),
        ("input", False, "next", 0, ["From this state, on with next"]),
        ("rewind", False, "next", 3, ["From this state, on with next"]),
        ("step", False, "", 0, []),
    ],
)
def test_the_ways_to_rewind_at_a_checkpoint(kind: str, effect: bool, then: str, before: int, said: list[str]) -> None:
    found = orders.ways(seq=4, kind=kind, step="it", then=then, before=before, effect=effect)
    assert [f"{way.label} {way.step}{', ' + way.rest if way.rest else ''}" for way in found] == said
    assert [way.to for way in found] == [4 if way.place == "after" else before for way in found]


def test_a_gate_that_had_nothing_to_ask_has_no_answer_to_keep() -> None:
    """It was offered with its answer, and to be asked again."""
    found = orders.ways(seq=4, kind="gate", step="it", then="next", before=3, asked=False)
    assert [(way.label, way.step, way.rest) for way in found] == [
        ("After", "it", ""),
        ("Before", "it", "and look again"),
    ]
