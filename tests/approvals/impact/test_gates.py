"""Gates: when an earlier answer stands, when they ask or open again, and what a person's word and hand do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from pydantic import BaseModel

from agents import Agent, Card
from agents import gate as asking_gate
from agents.definition import registry
from approvals.cards import binding
from approvals.impact import impact
from approvals.impact.choices import GateChoices, SavedState
from approvals.impact.facts import EffectFact, GateFact, MoveTarget, RecordedHistory
from checkpoints.runs.plans import input_digest
from checkpoints.values.digests import StretchDigest, of_value
from tests.approvals.impact.recorded import Recorded
from tests.approvals.impact.small_plans import (
    approve,
    back,
    choices,
    edit,
    effect,
    gate,
    plan,
    said,
    step,
    stop,
)
from tests.factories.driven_runs import advance, make_run, open_gate

ASKED = plan(step("draft", "x", "text"), gate("review", "text", allows=("send",), asks=True),
             effect("send", "text", "sent", guarded=True))  # fmt: skip
STEPS = plan(step("load", "x", "y"), effect("pay", "y", "paid", guarded=True), step("end", "paid", "z"),
             gate("review", "y", allows=("pay",)))  # fmt: skip
NOW = SavedState({"x": 1, "y": 2}, {"x": of_value(1), "y": of_value(2)}, StretchDigest)
TRIP = plan(
    step("draft", "x", "offer"), gate("review", "offer", allows=("book", "pay"), edits=("offer", "note"), asks=True),
    effect("book", "offer", "room", guarded=True), step("count", "room", "sum"),
    effect("pay", "sum", "paid", guarded=True), step("end", "paid"),
)  # fmt: skip
COUNTED = plan(
    gate("review", "offer", allows=("book", "pay"), asks=True), effect("book", "offer size", "room", guarded=True),
    step("count", "room rate", "sum"), effect("pay", "sum offer", "paid", guarded=True), step("end", "paid"),
)  # fmt: skip


def sent() -> Recorded:
    return Recorded(ASKED, x=1).ran("draft", {"text": 1}).agreed("review").ran("send")


def test_a_gate_stands_where_it_shows_the_same_and_all_that_it_allowed_is_done_and_else_asks_again() -> None:
    assert said(edit(sent(), "draft", other=1)) == ["stands draft", "stands review", "stands send"]

    told = edit(sent().changed("send", status="undone"), "draft", other=1)
    assert said(told) == ["stands draft", "asks review"]
    assert told.asks == "review"


def unasked() -> Recorded:
    return Recorded(plan(gate("facts", "x"), step("use", "x", "y")), x=1).passed("facts").ran("use")


def test_a_gate_that_may_have_nothing_to_ask_only_may_ask_unless_its_own_method_says() -> None:
    made = unasked()
    assert said(edit(made, "facts", x=2)) == ["may ask facts on facts", "may use on facts"]
    assert said(edit(made, "facts", other=2)) == ["stands facts", "stands use"]

    known = replace(made.history(), draws=lambda step, state: state["x"] == 0)
    assert said(impact(known, made.target("", x=2))) == ["will facts", "will use"]
    assert said(impact(known, made.target("", x=0))) == ["asks facts"]


def test_the_first_gate_that_certainly_asks_ends_what_is_foretold() -> None:
    steps = plan(step("a", "x", "y"), gate("one", "y", asks=True), step("b"), gate("two", asks=True))
    made = Recorded(steps, x=1).ran("a", {"y": 1}).asked("one")
    assert said(approve(made)) == ["will b", "asks two"]
    assert said(back(made, "a")) == ["will a", "asks one"]


def test_when_nobody_answers_the_run_goes_where_the_plan_says_or_ends() -> None:
    for on_expire, expected in (("late", ["will late"]), ("", [])):
        steps = plan(gate("ask", "x", asks=True, on_expire=on_expire), step("go", ends=True), step("late"))
        made = Recorded(steps, x=1).asked("ask")
        told = impact(made.history(), choices(made).expiring())
        assert said(told) == expected
        assert told.ends


def test_each_answer_about_an_effect_in_doubt_is_told() -> None:
    here = input_digest(STEPS.step("pay"), NOW.fields)
    row = EffectFact(id=7, run=1, step="pay", input_digest=here, occurrence=0, status="unknown", undo="cancel")
    fact = GateFact(id=3, run=1, seq=4, step="pay", input_digest=None, recovery=True)
    history = RecordedHistory(plan=STEPS, head=MoveTarget(run=1, next_step="pay"), effects=[row], gates=[fact])
    told = {name: GateChoices(history, fact, NOW).answering(name) for name in ("happened", "not_happened", "stop")}
    assert {name: said(impact(history, target)) for name, target in told.items() if target} == {
        "happened": ["stands pay", "will end", "may ask review on review"],
        "not_happened": ["will pay", "will end", "may ask review on review"],
        "stop": [],
    }


def finished() -> Recorded:
    made = Recorded(TRIP, x=1).ran("draft", {"offer": 1}).agreed("review").ran("book", {"room": 1})
    return made.ran("count", {"sum": 1}).ran("pay").ran("end")


def reopened() -> Recorded:
    """A finished trip that was sent back to its payment: the permission for that is used."""
    return finished().moved("rewind", "pay").changed("pay", again=True).reopened("review").asked("review")


def test_a_yes_goes_on_with_the_effect_for_whose_sake_it_was_opened_and_an_edit_asks_again() -> None:
    """It was told as if the run went through all that follows the gate once more."""
    told = approve(reopened())
    assert said(told) == ["will pay", "may end on pay", "undone pay"]
    assert "book" in [row.step for row in told.kept]

    told = approve(reopened(), offer=2)
    assert said(told) == ["asks review", "undone pay", "may_undone book on review"]
    assert [row.step for row in told.kept] == ["draft"]

    assert said(stop(reopened())) == ["undone pay"]


def test_in_a_fork_the_gate_of_its_origin_is_where_an_edit_goes_back_to() -> None:
    for edited, rows in (({}, ["will pay", "may end on pay"]), ({"offer": 2}, ["asks review"])):
        made = finished().forked("pay", sum=5).reopened("review").asked("review")
        assert said(approve(made, **edited)) == rows


def counted() -> Recorded:
    made = Recorded(COUNTED, offer=1, size=1, rate=1, note="").agreed("review").ran("book", {"room": 1})
    return made.ran("count", {"sum": [1, 1]}).ran("pay", {"paid": 1}).ran("end")


def unpaid() -> Recorded:
    """The payment failed, and its permission is left."""
    made = counted().changed("pay", status="failed")
    grants = [replace(each, used_by=0) if each.effect == "pay" else each for each in made.gates[0].grants]
    made.gates[0] = replace(made.gates[0], grants=grants)
    return made


def test_it_needs_another_permission() -> None:
    """Where what the effect is made of after the gate was changed. It was said to run."""
    assert binding.loose_names(COUNTED, gate_step="review", effect="pay") == {"sum", "room", "rate", "offer", "size"}
    for gate_step, effect_step in (("review", "book"), ("pay", "pay"), ("lost", "pay")):
        assert binding.loose_names(COUNTED, gate_step=gate_step, effect=effect_step) == set()
    for changed in ({"sum": 5}, {"rate": 2}):
        assert said(edit(unpaid(), "pay", **changed))[:2] == ["may pay on review", "asks review"]


class Quiet(Agent):
    """Asks nothing, although its gate is annotated `-> Card`."""

    name = "quiet"

    class State(BaseModel):
        amount: int = 0

    @asking_gate()
    def review(self, amount: int) -> Card:
        return cast(Card, cast(Any, None))


def test_a_gate_that_breaks_its_word_stops_and_asks_how_to_go_on(settings: Any) -> None:
    settings.HOLDPOINT_AGENTS = [__name__]
    registry.forget()
    try:
        run = advance(make_run("quiet"))
        assert run.status == "waiting"
        assert open_gate(run).kind == "recovery"
        assert "asked nothing" in str(open_gate(run).standing().card.summary)
    finally:
        registry.forget()
