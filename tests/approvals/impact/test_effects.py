"""Steps and effects: what runs again, what may, what stands, is adopted, done anew, undone and cannot be undone."""

from __future__ import annotations

from collections.abc import Callable
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
SEND: PlanSpec = plan(effect("book", "room", "key"), effect("mail", "key", "sent"), step("end", "room"))
CHAIN = plan(step("find", "name", "order"), step("price", "order", "sum"), step("tell", "sum name", "text"))
FIELDS = {
    "order": digests.of_value({"n": 1}),
    "feedback": StretchDigest.empty().appended(["no"]),
    "other": digests.of_value(2),
}


def proposed() -> Recorded:
    return Recorded(REFUND, name="A", feedback=[]).ran("find", {"order": "A"}).ran("propose", {"offer": "A 0"})


def finished() -> Recorded:
    return proposed().agreed("review").ran("pay", {"payment": "paid A 0"}).ran("reply", {"sent": 1})


def edited() -> Recorded:
    """It goes on with another offer, and asks about that."""
    return finished().moved("edit", "review", offer="other").asked("review")


def booked() -> Recorded:
    return Recorded(SEND, room=1).ran("book", {"key": 1}).ran("mail").ran("end")


def ordered() -> Recorded:
    return Recorded(CHAIN, name="A").ran("find", {"order": "a"}).ran("price", {"sum": 1}).ran("tell", {"text": "A 1"})


def begun_again() -> Recorded:
    return booked().changed("book", status="kept").moved("rewind", "book").began("book")


def rippled() -> Recorded:
    made = ordered().moved("edit", "find", name="a").ran("find", {"order": "a"})
    return made.reused("price", {"sum": 1}).ran("tell")


def other_code() -> Recorded:
    made = ordered()
    find, price, tell = CHAIN.steps
    made.plan = plan(find, replace(price, code_hash="cd"), tell)
    return made


def looked() -> Recorded:
    looking = plan(step("look", "", "seen", reads_world=True), step("act", "seen", "done"))
    return Recorded(looking).ran("look", {"seen": 1}).ran("act")


def grown(write: Any) -> Recorded:
    made = Recorded(plan(step("grow", "", "items"), step("sum", "items", "total")), items=[1])
    return made.ran("grow", {"items": write}).ran("sum")


def jumped() -> Recorded:
    steps = plan(
        step("pick", "x", "y", jumps=("long",)), step("short", "y", "z"), step("long", "y", "z"), step("end", "w", "v")
    )
    return Recorded(steps, x=1, w=1).ran("pick", {"y": 1}).ran("short").ran("long").ran("end")


def looped() -> Recorded:
    loop = plan(step("draw", "", "x"), step("look", "x", "", jumps=("draw",)))
    made = Recorded(loop, other=0).ran("draw", {"x": 1}).ran("look", {}, "draw").ran("draw", {"x": 2})
    return made.ran("look")


def repaired(*, irreversible: bool) -> Recorded:
    steps = plan(
        step("make", "seed", "part"), effect("tell", "part", "told", irreversible=irreversible),
        step("check", "part world", "whole", validators=("fits",), rings=1), step("end", "whole", "done"),
    )  # fmt: skip
    return Recorded(steps, seed=1, part=1, note="").ran("make").ran("tell").ran("check").ran("end")


ALL_STAND = ["stands propose", "stands review", "stands pay", "stands reply"]
WHOLE = [
    ("an amount that another yes was for is paid, and the payment before undone",
     lambda: approve(edited()), ["will pay", "will reply", "cannot reply", "undone pay"]),
    ("an edit back takes the payment that was made", lambda: approve(edited(), offer="A 0"), ALL_STAND[2:]),
    ("a rewound refund names what may come of its payment", lambda: rewind(finished(), "find"),
     ["will find", "may propose on find", "may ask review on find", "may pay on find, review",
      "may reply on find, review", "cannot reply on find, review", "may_undone pay on find, review"]),
    ("what was done with this very input is adopted and asks nobody",
     lambda: edit(finished(), "propose", other=1), ALL_STAND),
    ("an effect whose permission was used goes back to its gate", lambda: rewind(finished(), "pay"),
     ["may pay on review", "asks review", "cannot reply on review", "undone pay"]),
    ("what was made of an undone effect may go with it", lambda: edit(booked(), "", room=2),
     ["will book", "may mail on book", "will end", "may_undone mail on book", "undone book"]),
    ("what runs again", lambda: rewind(ordered(), "find"), ["will find", "may price on find", "may tell on find"]),
    ("what an edit does not reach", lambda: edit(ordered(), "find", other=1),
     ["stands find", "stands price", "stands tell"]),
    ("a changed result stands", lambda: edit(ordered(), "price", sum=99), ["stands price", "stands tell"]),
    ("equal outputs stop the ripple, and nobody knows that before", lambda: edit(ordered(), "find", name="a"),
     ["will find", "may price on find", "may tell on find"]),
    ("and once they have", lambda: edit(rippled(), "", name="a"), ["stands find", "stands price", "stands tell"]),
    ("a step that looks outside the state runs whatever it reads", lambda: edit(looked(), "look", other=1),
     ["will look", "may act on look"]),
    ("other code runs anew", lambda: edit(other_code(), "find", other=1),
     ["stands find", "will price", "may tell on price"]),
    ("a recorded append is made to the list that is there", lambda: edit(grown(Append([3])), "grow", items=[9]),
     ["stands grow", "will sum"]),  # of [9, 3], and not of [1, 3]
    ("a recorded splice too", lambda: edit(grown(Splice(0, 1, [3])), "grow", items=[9]), ["stands grow", "stands sum"]),
    ("a recorded list takes its place", lambda: edit(grown([1, 3]), "grow", items=[9]), ["stands grow", "stands sum"]),
    ("a fork reuses what its origin has done", lambda: fork(ordered(), "find"),
     ["stands find", "stands price", "stands tell"]),
    ("and runs what it changed", lambda: fork(ordered(), "price", name="B"), ["stands price", "will tell"]),
    ("what lies behind a jump may run", lambda: rewind(jumped(), "pick"),
     ["will pick", "may short on pick", "may long on pick", "stands end"]),
    ("where all ways lead will", lambda: edit(jumped(), "pick", x=2, w=2),
     ["will pick", "may short on pick", "may long on pick", "will end"]),
    ("each turn of a loop takes the output of its own turn", lambda: edit(looped(), "", other=1),
     ["stands draw", "stands look"] * 2),
    ("a repair may not go back over what cannot be undone", lambda: edit(repaired(irreversible=True), "make", world=1),
     ["stands make", "stands tell", "will check", "may end on check"]),
]  # fmt: skip
# By what was told wrongly once, what is among the rows.
AMONG = [
    ("what was left open was told to stand", lambda: edit(booked().changed("book", status="kept", left_open=True), ""),
     {"may ask book on book"}),
    ("so it was where the run was sent back to it",
     lambda: rewind(booked().changed("book", status="kept", left_open=True), "book"), {"may ask book on book"}),
    ("what is in doubt was told to stand", lambda: edit(booked().changed("book", status="unknown"), ""),
     {"may ask book on book", "may_undone book on book"}),
    ("the first time's result counted for both times, so that the run was told to end, and it asked",
     lambda: rewind(begun_again(), "mail"), {"may ask book on book", "may_undone book on book"}),
    ("what another run has taken over was told to be undone",
     lambda: edit(booked().changed("book", shared=True), "", room=2), {"cannot book"}),
    ("a repair may go back over what can be undone", lambda: edit(repaired(irreversible=False), "make", world=1),
     {"may make on check", "may_undone tell on check"}),
]  # fmt: skip


@pytest.mark.parametrize(("foretold", "rows"), [pytest.param(*case, id=name) for name, *case in WHOLE])
def test_each_row_is_told(foretold: Callable[[], Impact], rows: list[str]) -> None:
    assert said(foretold()) == rows


@pytest.mark.parametrize(("foretold", "rows"), [pytest.param(*case, id=name) for name, *case in AMONG])
def test_among_the_rows_is(foretold: Callable[[], Impact], rows: set[str]) -> None:
    assert set(said(foretold())) >= rows


def test_a_first_yes_runs_the_effects_and_names_what_is_final() -> None:
    told = approve(proposed().asked("review"))
    assert said(told) == ["will pay", "will reply"]
    assert [row.step for row in told.will if row.irreversible] == ["reply"]
    assert told.ends
    assert [row.step for row in told.kept] == ["find", "propose"]


def test_sent_back_with_feedback_the_agent_proposes_anew_and_people_are_asked() -> None:
    told = back(proposed().asked("review"), "propose")
    assert said(told) == ["will propose", "asks review"]
    assert told.asks == "review"
    assert [row.step for row in told.kept] == ["find"]
    drafting = plan(step("draft", "feedback", "text"), step("check", "text feedback", "ok"))
    made = Recorded(drafting, feedback=[]).ran("draft", {"text": 1}).ran("check")
    told = impact(made.history(), replace(made.target("", rewind=True), novel=frozenset({"feedback"})))
    assert said(told) == ["will draft", "will check"], "feedback is like nothing recorded: what reads it runs"


def test_sent_back_to_an_effect_it_is_undone_and_done_again_and_what_cannot_be_undone_is_named() -> None:
    made = Recorded(plan(effect("book", "room", "key"), step("tell", "key", "text")), room=1)
    told = rewind(made.ran("book", {"key": 1}).ran("tell"), "book")
    assert said(told) == ["will book", "may tell on book", "undone book"]
    assert ([row.again for row in told.ahead], told.repeated) == ([True, False, True], ())
    made = Recorded(plan(effect("mail", "text", "sent", irreversible=True)), text=1).ran("mail")
    told = rewind(made, "mail")
    assert said(told) == ["will mail", "cannot mail"]
    assert [row.step for row in told.repeated] == ["mail"]


def test_a_fork_asks_before_it_takes_over_what_its_origin_has_done() -> None:
    told = fork(booked(), "book")
    assert said(told) == ["may ask book on book"]
    assert (told.asks, told.ahead[0].why, told.ahead[0].effect, told.ahead[0].origin) == ("book", "takeover", 1, 1)
    told = fork(booked(), "book", room=2)
    assert said(told) == ["will book", "may ask mail on book", "may end on book"]
    assert (told.undone, told.may_undone, told.cannot) == ((), (), ()), "its origin's effects are left alone"


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
