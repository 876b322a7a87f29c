"""The state as a form, and back: what was typed becomes a patch of the state that there is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.template.loader import render_to_string

from agents.pages import edits as editors
from agents.pages.run import offered_moves as moves
from approvals.forms.texts import as_json
from approvals.impact import Impact, ImpactVerdict
from approvals.impact.result import ImpactRow
from approvals.presentation.decision_form.faults import of_form
from approvals.schema import redact
from checkpoints.models import Checkpoint
from checkpoints.runs.plans import PlanSpec, StepSpec
from checkpoints.values import patch
from tests.approvals.forms.posted_forms import as_posted

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
FILE = {"type": "object", "properties": {"$artifact": {"type": "string"}, "size": {"type": "integer"}}}
STATE = {"a": 1, "b": {"x": [1, 2]}, "d": "é"}
VEIL = redact.veil_marks(PLAN.state_schema)


def drawn(posted: dict[str, str] | None = None, faults: Any = ()) -> list[editors.FieldEditor]:
    return editors.list_editors(PLAN, editors.draw_form(PLAN, STATE, posted or {}, VEIL, faults), STATE, "second", VEIL)


def test_what_the_steps_ahead_read_comes_first_in_their_order() -> None:
    found = drawn()
    assert [each.name for each in found] == ["b", "d", "a", "c"]
    assert [each.readers for each in found] == [("Second",), ("Second",), (), ()]
    assert [each.brief for each in found] == ["1 field", "é", "1", "nothing yet"]
    assert [each.unfolded for each in found] == [True, True, False, False]


def test_what_comes_back_as_it_was_drawn_is_no_change() -> None:
    posted = as_posted(editors.draw_form(PLAN, STATE, {}, VEIL))
    assert {"state/a", "state!order/b/x", "state/b/x/0", "state/c", "state/d"} <= set(posted)
    found = editors.read_state(PLAN, STATE, posted, VEIL)
    assert (found.patch, found.faults) == ([], [])
    assert not any(each.changed for each in drawn(posted))


@pytest.mark.parametrize(
    ("posted", "expected"),
    [
        ({"a": " 2 "}, {"a": 2, "b": {"x": [1, 2]}, "d": "é"}),
        ({"b/x/0": "3"}, {"a": 1, "b": {"x": [3, 2]}, "d": "é"}),
        ({"c": "null"}, {"a": 1, "b": {"x": [1, 2]}, "c": None, "d": "é"}),
        ({"c": ""}, STATE),
        ({"d": "é"}, STATE),
    ],
)
def test_what_is_typed_is_a_patch_of_the_fields_that_differ(posted: dict[str, str], expected: dict[str, Any]) -> None:
    found = editors.read_state(PLAN, STATE, {f"state/{name}": text for name, text in posted.items()}, VEIL)
    assert patch.are_same(found.state, expected)
    assert patch.are_same(patch.apply(found.patch, STATE), expected)
    assert found.changed == {name for name in {*expected, *STATE} if not _same(expected, name)}


def _same(expected: dict[str, Any], name: str) -> bool:
    return name in expected and name in STATE and patch.are_same(expected[name], STATE[name])


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


def test_a_fault_is_told_at_its_place_and_one_about_none_at_the_whole() -> None:
    faults: list[Any] = [
        {"pointer": "/b/x/0", "message": "is no number"},
        {"pointer": "/lost", "message": "is no field"},
        {"pointer": "", "message": "does not fit together"},
    ]
    form = editors.draw_form(PLAN, STATE, {}, VEIL, faults)
    told = {each.id: each.message for each in of_form(form)}
    assert sorted(told.values()) == ["is no field does not fit together", "is no number"]
    assert {node.pointer: node.error for node in form.nodes if node.error} == {
        "": "is no field does not fit together", "/b/x/0": "is no number",
    }  # fmt: skip


def test_a_state_without_a_schema_is_one_text_of_json_and_has_to_stay_an_object() -> None:
    bare = PlanSpec("robo", "1", state_schema={}, steps=(StepSpec("first"),))
    (found,) = editors.list_editors(bare, editors.draw_form(bare, STATE, {}, redact.OPEN), STATE, "first", redact.OPEN)
    assert (found.name, found.node.kind) == ("", "json")
    assert editors.read_state(bare, STATE, {"state": '{"a": 1}'}, redact.OPEN).state == {"a": 1}
    wrong = editors.read_state(bare, STATE, {"state": "[]"}, redact.OPEN)
    assert (wrong.patch, [each["pointer"] for each in wrong.faults]) == ([], [""])


def test_a_file_is_shown_with_its_name_and_no_other_can_be_put_in_its_place() -> None:
    scan = {"$artifact": "a" * 64, "size": 6, "media_type": "text/plain", "name": "scan.txt"}
    plan = replace(PLAN, state_schema={"type": "object", "properties": {"scan": FILE}})
    form = editors.draw_form(plan, {"scan": scan}, {}, redact.OPEN)
    context = {"run": {"pk": 7}, "checkpoint": {"seq": 1}, "form": form}
    page = render_to_string(
        "runs/order/state_form.html",
        context | {"editors": editors.list_editors(plan, form, {"scan": scan}, "first", redact.OPEN)},
    )
    assert form.fields[0].kind == "file"
    assert "scan.txt" in page
    assert 'type="file"' not in page


def test_what_cannot_be_seen_is_written_as_an_escape_and_read_back_as_it_was() -> None:
    value = {"text": "a\u202eb\u200bc\x7f\x00d\U000e0041\u2028é😀"}
    text = as_json(value)
    assert all(ord(each) >= 32 or each == "\n" for each in text)
    assert not set(text) & {"\u202e", "\u200b", "\x7f", "\U000e0041", "\u2028"}
    assert "é😀" in text
    assert editors.read_state(PLAN, {}, {"state/c": text}, VEIL).state == {"c": value}


def row(step: str, verdict: ImpactVerdict, **more: Any) -> ImpactRow:
    return ImpactRow(step=step, kind="effect", verdict=verdict, **more)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ((), "Rewind"),
        ((row("pay", ImpactVerdict.WILL),), "Rewind"),
        ((row("pay", ImpactVerdict.UNDONE),), "Rewind, undoing “Pay”"),
        ((row("pay", ImpactVerdict.UNDONE), row("book", ImpactVerdict.UNDONE)), "Rewind, undoing 2 effects"),
        (
            (row("pay", ImpactVerdict.UNDONE), row("fee", ImpactVerdict.MAY_UNDONE)),
            "Rewind, undoing “Pay”, perhaps undoing “Fee”",
        ),
        ((row("tell", ImpactVerdict.CANNOT, again=True),), "Rewind, repeating “Tell”"),
        ((row("tell", ImpactVerdict.CANNOT),), "Rewind"),
    ],
)
def test_the_button_says_what_it_does(rows: tuple[ImpactRow, ...], said: str) -> None:
    assert moves.button_words("Rewind", Impact(rows=rows)) == said


@pytest.mark.parametrize(
    ("kind", "effect", "then", "before", "said"),
    [
        ("step", False, "next", 3, ["After It, keeping what it wrote", "Before It, and run it again"]),
        ("step", True, "next", 3, ["After It, keeping what it did", "Before It, and run it again"]),
        ("gate", False, "next", 3, ["After It, keeping its answer", "Before It, and ask again"]),
        ("reused", False, "next", 3, ["After It, keeping what it wrote", "Before It, and run it again"]),
        ("step", False, "", 3, ["Before It, and run it again"]),
        ("step", False, "next", 0, ["After It, keeping what it wrote"]),
        ("input", False, "next", 0, ["From this state, go on with Next"]),
        ("rewind", False, "next", 3, ["From this state, go on with Next"]),
        ("step", False, "", 0, []),
    ],
)
def test_the_ways_to_rewind_at_a_checkpoint(kind: str, effect: bool, then: str, before: int, said: list[str]) -> None:
    plan = PlanSpec("agent", "1", steps=(StepSpec("it", kind="effect" if effect else "step"),))
    found = moves.rewind_targets(Checkpoint(seq=4, kind=kind, step="it", next_step=then), plan, before=before)
    assert [f"{way.label} {way.step}{', ' + way.rest if way.rest else ''}" for way in found] == said
    assert [way.to for way in found] == [4 if way.place == "after" else before for way in found]


def test_a_gate_that_had_nothing_to_ask_has_no_answer_to_keep() -> None:
    """It was offered with its answer, and to be asked again."""
    saved = Checkpoint(seq=4, kind="gate", step="it", next_step="next")
    found = moves.rewind_targets(saved, PlanSpec("agent", "1"), before=3, asked=False)
    assert [(way.label, way.step, way.rest) for way in found] == [
        ("After", "It", ""),
        ("Before", "It", "and check again"),
    ]
