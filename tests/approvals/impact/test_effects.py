"""Steps and effects: what runs again, what may, what stands, is adopted, done anew, undone and cannot be undone."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from approvals.impact import Impact, ImpactRow, impact
from checkpoints.runs.plans import PlanSpec, StepSpec, input_digest
from checkpoints.values import digests
from checkpoints.values.digests import StretchDigest
from checkpoints.values.ops import Append, Splice
from tests.approvals.impact.recorded import Recorded
from tests.approvals.impact.small_plans import approve, back, edit, effect, fork, gate, plan, rewind, said, step

REFUND = plan(
    step("find", "name", "order", reads_world=True),
    step("propose", "order feedback", "offer"),
    gate("review", "offer", allows=("pay", "reply"), edits=("offer",), feedback="feedback", asks=True),
    effect("pay", "offer", "payment", guarded=True),
    effect("reply", "offer payment", "sent", guarded=True, irreversible=True),
)


def proposed() -> Recorded:
    return Recorded(REFUND, name="A", feedback=[]).ran("find", {"order": "A"}).ran("propose", {"offer": "A 0"})


def finished() -> Recorded:
    return proposed().agreed("review").ran("pay", {"payment": "paid A 0"}).ran("reply", {"sent": 1})


def edited() -> Recorded:
    """It goes on with another offer, and asks about that."""
    return finished().moved("edit", "review", offer="other").asked("review")


def test_a_first_yes_runs_the_effects_and_names_what_is_final() -> None:
    told = approve(proposed().asked("review"))
    assert said(told) == ["will pay", "will reply"]
    assert [row.step for row in told.final] == ["reply"]
    assert told.ends
    assert [row.step for row in told.kept] == ["find", "propose"]


def test_a_rewound_refund_names_what_may_come_of_its_payment() -> None:
    told = rewind(finished(), "find")
    assert said(told) == [
        "will find", "may propose on find", "may ask review on find", "may pay on find, review",
        "may reply on find, review", "cannot reply on find, review", "may_undone pay on find, review",
    ]  # fmt: skip


def test_what_was_done_with_this_very_input_is_adopted_and_asks_nobody() -> None:
    told = edit(finished(), "propose", other=1)
    assert said(told) == ["stands propose", "stands review", "stands pay", "stands reply"]
    assert told.ends
    assert [row.effect for row in told.ahead if row.kind == "effect"] == [1, 2]


def test_another_approved_amount_is_paid_and_an_edit_back_takes_the_payment_that_was_made() -> None:
    assert said(approve(edited())) == ["will pay", "will reply", "cannot reply", "undone pay"]

    assert said(approve(edited(), offer="A 0")) == ["stands pay", "stands reply"]


def test_sent_back_with_feedback_the_agent_proposes_anew_and_people_are_asked() -> None:
    told = back(proposed().asked("review"), "propose")
    assert said(told) == ["will propose", "asks review"]
    assert told.asks == "review"
    assert [row.step for row in told.kept] == ["find"]


def test_sent_back_to_an_effect_it_is_undone_and_done_again_and_what_cannot_be_undone_is_named() -> None:
    made = Recorded(plan(effect("book", "room", "key"), step("tell", "key", "text")), room=1)
    told = rewind(made.ran("book", {"key": 1}).ran("tell"), "book")
    assert said(told) == ["will book", "may tell on book", "undone book"]
    assert [row.again for row in told.ahead] == [True, False, True]
    assert told.repeated == ()

    made = Recorded(plan(effect("mail", "text", "sent", irreversible=True)), text=1).ran("mail")
    told = rewind(made, "mail")
    assert said(told) == ["will mail", "cannot mail"]
    assert [row.step for row in told.repeated] == ["mail"]


def test_an_effect_whose_permission_was_used_goes_back_to_its_gate() -> None:
    told = rewind(finished(), "pay")
    assert said(told) == ["may pay on review", "asks review", "cannot reply on review", "undone pay"]


SEND: PlanSpec = plan(effect("book", "room", "key"), effect("mail", "key", "sent"), step("end", "room"))


def booked() -> Recorded:
    return Recorded(SEND, room=1).ran("book", {"key": 1}).ran("mail").ran("end")


def test_what_was_made_of_an_undone_effect_may_go_with_it() -> None:
    assert said(edit(booked(), "", room=2)) == [
        "will book", "may mail on book", "will end", "may_undone mail on book", "undone book",
    ]  # fmt: skip


def test_a_fork_asks_before_it_takes_over_what_its_origin_has_done() -> None:
    told = fork(booked(), "book")
    assert said(told) == ["may ask book on book"]
    assert (told.asks, told.ahead[0].why, told.ahead[0].effect, told.ahead[0].origin) == ("book", "takeover", 1, 1)
    told = fork(booked(), "book", room=2)
    assert said(told) == ["will book", "may ask mail on book", "may end on book"]
    assert (told.undone, told.may_undone, told.cannot) == ((), (), ()), "its origin's effects are left alone"


def test_what_was_left_open_or_is_in_doubt_is_asked_about_where_the_run_comes_to_it() -> None:
    """It was told to stand, as if it had been done."""
    made = booked().changed("book", status="kept", left_open=True)
    told = edit(made, "")
    assert said(told)[0] == "may ask book on book"
    assert not any(row.kind == "effect" for row in told.stands)
    assert said(rewind(made, "book"))[0] == "may ask book on book"

    told = edit(booked().changed("book", status="unknown"), "")
    assert said(told)[0] == "may ask book on book"
    assert "may_undone book on book" in said(told)


def test_what_was_begun_again_is_asked_about_where_the_run_goes_back_to_after_the_first_time() -> None:
    """The first time's result on the path counted for both, so that the run was told to end, and it asked."""
    told = rewind(booked().changed("book", status="kept").moved("rewind", "book").began("book"), "mail")
    assert "may_undone book on book" in said(told)
    assert "may ask book on book" in said(told)
    assert [row.step for row in told.kept] == ["book"]


def test_what_a_fork_stands_on_is_left_alone() -> None:
    """It was told to be undone, and the runner keeps what another run has taken over."""
    assert "cannot book" in said(edit(booked().changed("book", shared=True), "", room=2))


CHAIN = plan(step("find", "name", "order"), step("price", "order", "sum"), step("tell", "sum name", "text"))


def ordered() -> Recorded:
    return Recorded(CHAIN, name="A").ran("find", {"order": "a"}).ran("price", {"sum": 1}).ran("tell", {"text": "A 1"})


def test_what_runs_again_and_what_an_edit_does_not_reach() -> None:
    made = ordered()
    assert said(rewind(made, "find")) == ["will find", "may price on find", "may tell on find"]

    made = ordered()
    assert said(edit(made, "find", other=1)) == ["stands find", "stands price", "stands tell"]
    assert said(edit(made, "price", sum=99)) == ["stands price", "stands tell"]


def test_equal_outputs_stop_the_ripple_but_nobody_knows_that_before() -> None:
    made = ordered()
    told = edit(made, "find", name="a")
    assert said(told) == ["will find", "may price on find", "may tell on find"]
    made.moved("edit", "find", name="a").ran("find", {"order": "a"}).reused("price", {"sum": 1}).ran("tell")
    assert said(edit(made, "", name="a")) == ["stands find", "stands price", "stands tell"]


def test_a_step_that_looks_outside_the_state_runs_whatever_it_reads() -> None:
    looking = plan(step("look", "", "seen", reads_world=True), step("act", "seen", "done"))
    made = Recorded(looking).ran("look", {"seen": 1}).ran("act")
    assert said(edit(made, "look", other=1)) == ["will look", "may act on look"]


def test_other_code_runs_anew() -> None:
    made = ordered()
    find, price, tell = CHAIN.steps
    made.plan = plan(find, replace(price, code_hash="cd"), tell)
    assert said(edit(made, "find", other=1)) == ["stands find", "will price", "may tell on price"]


def test_feedback_is_like_nothing_recorded_so_what_reads_it_certainly_runs() -> None:
    drafting = plan(step("draft", "feedback", "text"), step("check", "text feedback", "ok"))
    made = Recorded(drafting, feedback=[]).ran("draft", {"text": 1}).ran("check")
    told = impact(made.history(), replace(made.target("", rewind=True), novel=frozenset({"feedback"})))
    assert said(told) == ["will draft", "will check"]


LISTS = [
    (Append([3]), "will sum"),  # [9, 3], and not [1, 3]
    (Splice(0, 1, [3]), "stands sum"),  # [3] either way
    ([1, 3], "stands sum"),
]


@pytest.mark.parametrize(("write", "after"), LISTS)
def test_a_recorded_change_of_a_list_is_made_to_the_list_that_is_there(write: Any, after: str) -> None:
    made = Recorded(plan(step("grow", "", "items"), step("sum", "items", "total")), items=[1])
    made.ran("grow", {"items": write}).ran("sum")
    assert said(edit(made, "grow", items=[9])) == ["stands grow", after]


def test_a_fork_reuses_what_its_origin_has_done() -> None:
    made = ordered()
    assert said(fork(made, "find")) == ["stands find", "stands price", "stands tell"]
    assert said(fork(made, "price", name="B")) == ["stands price", "will tell"]


def test_what_lies_behind_a_jump_may_run_and_where_all_ways_lead_will() -> None:
    steps = plan(
        step("pick", "x", "y", jumps=("long",)), step("short", "y", "z"), step("long", "y", "z"), step("end", "w", "v")
    )
    made = Recorded(steps, x=1, w=1).ran("pick", {"y": 1}).ran("short").ran("long").ran("end")
    assert said(rewind(made, "pick")) == ["will pick", "may short on pick", "may long on pick", "stands end"]
    assert said(edit(made, "pick", x=2, w=2)) == [
        "will pick", "may short on pick", "may long on pick", "will end",
    ]  # fmt: skip


def test_how_long_a_step_took_last_is_told_and_changes_no_digest() -> None:
    made = ordered()
    told = rewind(made, "find")
    assert [row.took for row in told.ahead] == [timedelta(seconds=1)] * 3
    slower = Impact(rows=tuple(_slower(row) for row in told.rows), asks=told.asks, ends=told.ends)
    assert slower.digest() == told.digest()
    assert slower.to_json()["rows"][0]["took"] == 9.0
    assert rewind(made, "price").digest() != told.digest()


def _slower(row: ImpactRow) -> ImpactRow:
    return replace(row, took=timedelta(seconds=9))


def test_each_turn_of_a_loop_takes_the_output_of_its_own_turn() -> None:
    loop = plan(step("draw", "", "x"), step("look", "x", "", jumps=("draw",)))
    made = Recorded(loop, other=0).ran("draw", {"x": 1}).ran("look", {}, "draw").ran("draw", {"x": 2}).ran("look")
    assert said(edit(made, "", other=1)) == ["stands draw", "stands look"] * 2


def told_of(irreversible: bool, tells: str = "part") -> Recorded:
    started = Recorded(repaired(irreversible, tells), seed=1, part=1, note="")
    return started.ran("make").ran("tell").ran("check").ran("end")


def repaired(irreversible: bool, tells: str) -> PlanSpec:
    return plan(
        step("make", "seed", "part"), effect("tell", tells, "told", irreversible=irreversible),
        step("check", "part world", "whole", validators=("fits",), rings=1), step("end", "whole", "done"),
    )  # fmt: skip


def test_a_repair_may_go_back_only_over_what_can_be_undone() -> None:
    told = said(edit(told_of(irreversible=False), "make", world=1))
    assert "may make on check" in told
    assert "may_undone tell on check" in told

    told = said(edit(told_of(irreversible=True), "make", world=1))
    assert told == ["stands make", "stands tell", "will check", "may end on check"]


def test_the_steps_that_may_read_something_else() -> None:
    chain = plan(
        step("a", "x", "b"), step("skip", "x", "y"), step("world", "x", "z", reads_world=True), step("c", "b", "d"),
        effect("e", "d"), effect("f", "z"), effect("g", "y w"),
    )  # fmt: skip
    names = [each.name for each in chain.steps]
    assert chain.redone(names) == ["a", "world", "c", "e", "f"]
    assert chain.redone(names, ["w"]) == ["a", "world", "c", "e", "f", "g"]
    assert chain.redone(names[1:]) == ["skip", "world", "f", "g"]
    assert chain.redone([]) == []


FIELDS = {
    "order": digests.of_value({"n": 1}),
    "feedback": StretchDigest.empty().appended(["no"]),
    "other": digests.of_value(2),
}


def test_it_covers_the_step_and_the_fields_that_it_reads() -> None:
    step = StepSpec("propose", reads=("order", "feedback", "nobody_wrote"))
    read = {"order": FIELDS["order"].hex(), "feedback": FIELDS["feedback"].hex()}
    assert input_digest(step, FIELDS) == digests.of_value(["step input", "propose", read])
    assert input_digest(step, {**FIELDS, "other": digests.of_value(3)}) == input_digest(step, FIELDS)


def test_configuration_counts_only_where_the_step_names_it() -> None:
    plain, asks = StepSpec("a", reads=("order",)), StepSpec("a", reads=("order",), config=("limit",))
    assert input_digest(plain, FIELDS, {"limit": 1}) == input_digest(plain, FIELDS, {"limit": 2})
    assert input_digest(asks, FIELDS, {"limit": 1}) != input_digest(asks, FIELDS, {"limit": 2})
    assert input_digest(asks, FIELDS, {"limit": 1, "x": 1}) == input_digest(asks, FIELDS, {"limit": 1, "x": 2})
