"""Gates: when an earlier answer stands, when they ask, and what a person's word does."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from approvals.impact import Impact, impact
from approvals.impact.choices import GateChoices, SavedState
from approvals.impact.facts import EffectFact, GateFact, GrantFact, MoveTarget, RecordedHistory
from approvals.impact.words import keeps_time
from checkpoints.runs.plans import PlanSpec, input_digest
from checkpoints.values.digests import StretchDigest, of_value

from .recorded import Recorded
from .small_plans import approve, back, choices, edit, effect, gate, going_back, plan, rewind, said, step

ASKED = plan(step("draft", "x", "text"), gate("review", "text", allows=("send",), asks=True),
             effect("send", "text", "sent", guarded=True))  # fmt: skip


def sent() -> Recorded:
    return Recorded(ASKED, x=1).ran("draft", {"text": 1}).agreed("review").ran("send")


def test_a_gate_stands_where_it_shows_the_same_and_all_that_it_allowed_is_done() -> None:
    assert said(edit(sent(), "draft", other=1)) == ["stands draft", "stands review", "stands send"]


def test_a_gate_asks_again_where_what_it_allowed_was_undone() -> None:
    told = edit(sent().changed("send", status="undone"), "draft", other=1)
    assert said(told) == ["stands draft", "asks review"]
    assert told.asks == "review"


def test_a_gate_asks_again_where_what_it_allowed_was_never_done() -> None:
    steps = plan(gate("review", "x", allows=("send",)), step("wait", "", "y", ends=True), *ASKED.steps[2:])
    made = Recorded(steps, x=1, text=1).agreed("review").ran("wait", {}, "")
    assert said(edit(made, "review", other=1)) == ["asks review"]


def test_the_gate_a_person_sends_the_run_back_to_asks_whatever_was_said_there() -> None:
    assert said(rewind(sent(), "review"))[:1] == ["asks review"]


def unasked() -> Recorded:
    return Recorded(plan(gate("facts", "x"), step("use", "x", "y")), x=1).passed("facts").ran("use")


def test_a_gate_that_may_have_nothing_to_ask_only_may_ask() -> None:
    made = unasked()
    assert said(edit(made, "facts", x=2)) == ["may ask facts on facts", "may use on facts"]
    assert said(edit(made, "facts", other=2)) == ["stands facts", "stands use"]


def test_what_the_gates_own_method_says_is_taken_for_certain() -> None:
    made = unasked()
    known = replace(made.history(), draws=lambda step, state: state["x"] == 0)
    assert said(impact(known, made.target("", x=2))) == ["will facts", "will use"]
    assert said(impact(known, made.target("", x=0))) == ["asks facts"]


def test_the_first_gate_that_certainly_asks_ends_what_is_foretold() -> None:
    steps = plan(step("a", "x", "y"), gate("one", "y", asks=True), step("b"), gate("two", asks=True))
    made = Recorded(steps, x=1).ran("a", {"y": 1}).asked("one")
    assert said(approve(made)) == ["will b", "asks two"]
    assert said(back(made, "a")) == ["will a", "asks one"]


def test_a_decision_that_a_step_reads_is_not_known_before_it_is_made() -> None:
    steps = plan(step("a", "x", "y"), gate("one", "y", edits=("y",), asks=True), step("tell", "decision", "text"))
    made = Recorded(steps, x=1).ran("a", {"y": 1})
    assert said(approve(made.asked("one"))) == ["will tell"]
    made.agreed("one", decision="yes").ran("tell").moved("edit", "a", x=2).ran("a", {"y": 2}).asked("one")
    assert said(approve(made)) == ["may tell on one"]


def test_when_nobody_answers_the_run_goes_where_the_plan_says_or_ends() -> None:
    for on_expire, expected in (("late", ["will late"]), ("", [])):
        steps = plan(gate("ask", "x", asks=True, on_expire=on_expire), step("go", ends=True), step("late"))
        made = Recorded(steps, x=1).asked("ask")
        told = impact(made.history(), choices(made).expiring())
        assert said(told) == expected
        assert told.ends


def test_a_question_that_nobody_answers_ends_the_run_and_takes_nothing_back_that_it_asks_about() -> None:
    row = EffectFact(id=7, run=1, step="pay", input_digest=b"d", occurrence=0, status="unknown", undo="cancel")
    for about, expected in ((7, []), (0, ["may ask pay on pay", "may_undone pay on pay"])):
        fact = GateFact(id=3, run=1, seq=4, step="pay", input_digest=None, recovery=True, about=about)
        history = RecordedHistory(plan=STEPS, head=MoveTarget(run=1, next_step="pay"), effects=[row], gates=[fact])
        assert said(impact(history, GateChoices(history, fact, NOW).expiring())) == expected


STEPS = plan(step("load", "x", "y"), effect("pay", "y", "paid", guarded=True), step("end", "paid", "z"),
             gate("review", "y", allows=("pay",)))  # fmt: skip
NOW = SavedState({"x": 1, "y": 2}, {"x": of_value(1), "y": of_value(2)}, StretchDigest)


def answer(choice: str, step: str = "pay", status: str = "unknown") -> Impact | None:
    here = input_digest(STEPS.step("pay"), NOW.fields)
    row = EffectFact(id=7, run=1, step="pay", input_digest=here, occurrence=0, status=status, undo="cancel")
    fact = GateFact(id=3, run=1, seq=4, step=step, input_digest=None, recovery=True)
    history = RecordedHistory(plan=STEPS, head=MoveTarget(run=1, next_step=step), effects=[row], gates=[fact])
    target = GateChoices(history, fact, NOW).answering(choice)
    return None if target is None else impact(history, target)


ANSWERS = [
    ("happened", ["stands pay", "will end", "may ask review on review"]),
    ("not_happened", ["will pay", "will end", "may ask review on review"]),
    ("again", ["will pay", "will end", "may ask review on review"]),
    ("stop", []),
]


@pytest.mark.parametrize(("choice", "expected"), ANSWERS)
def test_each_answer_about_an_effect_in_doubt_is_told(choice: str, expected: list[str]) -> None:
    told = answer(choice)
    assert told is not None
    assert said(told) == expected


@pytest.mark.parametrize(
    ("choice", "expected"),
    [("retry", "will load"), ("skip", "may_undone pay on pay"), ("stop", "may_undone pay on pay")],
)
def test_each_answer_about_a_failed_step_is_told(choice: str, expected: str) -> None:
    told = answer(choice, step="load")
    assert told is not None
    assert expected in said(told)


@pytest.mark.parametrize(
    ("choice", "expected"), [("was_done", "undone pay"), ("undone", None), ("keep", None), ("undo_again", "undone pay")]
)
def test_each_answer_about_an_effect_that_was_left_behind_is_told(choice: str, expected: str | None) -> None:
    status = "unknown" if choice == "was_done" else "done"
    row = EffectFact(id=7, run=1, step="pay", input_digest=b"d", occurrence=0, status=status, undo="cancel")
    fact = GateFact(id=3, run=1, seq=4, step="pay", input_digest=None, recovery=True, about=7)
    head = MoveTarget(run=1, next_step="end")
    history = RecordedHistory(plan=STEPS, head=head, effects=[row], gates=[fact], ending=True)
    target = GateChoices(history, fact, NOW).answering(choice)
    assert target is not None
    assert said(impact(history, target)) == ([expected] if expected else [])


def test_of_an_answer_that_nobody_here_knows_nothing_is_said() -> None:
    assert answer("toss_a_coin") is None


AT = {"text": {"type": "string"}, "at": {"type": "string", "format": "date-time"}}


@pytest.mark.parametrize(
    ("items", "kept"),
    [
        ({"type": "object", "properties": AT}, True),
        ({"type": "object", "properties": {"text": AT["text"]}}, False),
        ({"type": "object", "additionalProperties": True}, True),
        ({"type": "string"}, False),
        ({"$ref": "#/$defs/Words"}, True),
    ],
)
def test_feedback_is_like_nothing_recorded_only_where_it_keeps_when_it_was_said(
    items: dict[str, object], kept: bool
) -> None:
    schema = {
        "properties": {"feedback": {"type": "array", "items": items}},
        "$defs": {"Words": {"type": "object", "properties": AT}},
    }
    assert keeps_time(PlanSpec("robo", "1", state_schema=schema), "feedback") is kept


def test_a_yes_does_not_let_an_effect_run_whose_input_changes_on_the_way_to_it() -> None:
    steps = plan(
        gate("review", "y", allows=("pay",), asks=True), step("touch", "y", "y"), effect("pay", "y", guarded=True)
    )
    made = Recorded(steps, y=1).asked("review")
    given = [GrantFact(effect="pay", fields=lambda: {"y": of_value(1)})]
    target = MoveTarget(
        run=1, next_step="touch", path=[], state={"y": 1}, fields={"y": of_value(1)}, list_format=StretchDigest,
        gates=[1], deciding=1, decision="approved", grants=given,
    )  # fmt: skip
    assert said(impact(made.history(), target)) == [
        "will touch", "may pay on review", "may ask review on review", "may touch on review",
    ]  # fmt: skip


def test_a_gate_that_is_refused_now_asks_again_though_it_was_approved_before() -> None:
    """Its code was not known while it was open, so that the approval before it was said to stand."""
    made = Recorded(plan(step("draft", "x"), gate("review", "text", asks=True), step("end", "text")), x=1, text=1)
    made.ran("draft").agreed("review").ran("end").moved("rewind", "review").asked("review")
    open_now = made.gates[-1] = replace(made.gates[-1], code_hash=b"")
    history, target = made.history(), going_back(made, "draft")
    assert said(impact(history, target)) == ["will draft", "asks review"]
    other = replace(target, deciding=0)
    unsure = replace(history, gates=[*history.gates[:-1], replace(open_now, kind="rejected", execution=UUID(int=1))])
    assert said(impact(unsure, other))[:2] == ["will draft", "may ask review on review"]
