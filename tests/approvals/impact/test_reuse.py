"""Steps: what runs again, what may, and what stands."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from approvals.impact import Impact, ImpactRow, impact
from checkpoints.values.ops import Append, Splice

from .recorded import Recorded
from .small_plans import edit, fork, gate, plan, rewind, said, step

CHAIN = plan(step("find", "name", "order"), step("price", "order", "sum"), step("tell", "sum name", "text"))


def ordered() -> Recorded:
    return Recorded(CHAIN, name="A").ran("find", {"order": "a"}).ran("price", {"sum": 1}).ran("tell", {"text": "A 1"})


def test_the_step_a_person_sends_the_run_back_to_runs_and_what_reads_it_may() -> None:
    made = ordered()
    assert said(rewind(made, "find")) == ["will find", "may price on find", "may tell on find"]


def test_before_the_target_everything_stands() -> None:
    made = ordered()
    assert said(rewind(made, "tell"), kept=True) == ["stands find", "stands price", "will tell"]


def test_an_edit_runs_only_what_reads_the_change() -> None:
    made = ordered()
    assert said(edit(made, "find", other=1)) == ["stands find", "stands price", "stands tell"]
    assert said(edit(made, "price", sum=99)) == ["stands price", "stands tell"]


def test_equal_outputs_stop_the_ripple_but_nobody_knows_that_before() -> None:
    made = ordered()
    told = edit(made, "find", name="a")
    assert said(told) == ["will find", "may price on find", "may tell on find"]
    made.moved("edit", "find", name="a").ran("find", {"order": "a"}).reused("price", {"sum": 1}).ran("tell")
    assert said(edit(made, "", name="a")) == ["stands find", "stands price", "stands tell"]


def test_an_edit_back_to_what_it_was_reuses_what_was_done_then() -> None:
    made = ordered().moved("edit", "find", name="BB").ran("find", {"order": "bb"}).ran("price", {"sum": 2}).ran("tell")
    assert said(edit(made, "find", name="A")) == ["stands find", "stands price", "stands tell"]


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


def test_a_splice_that_does_not_fit_the_list_leaves_it_open_what_happens() -> None:
    made = Recorded(plan(step("cut", "", "items"), step("sum", "items", "total")), items=[1, 2])
    made.ran("cut", {"items": Splice(1, 1, [])}).ran("sum")
    assert said(edit(made, "cut", items=[9])) == ["may cut", "may sum"]


def test_a_fork_reuses_what_its_origin_has_done() -> None:
    made = ordered()
    assert said(fork(made, "find")) == ["stands find", "stands price", "stands tell"]
    assert said(fork(made, "price", name="B")) == ["stands price", "will tell"]


def test_a_run_without_branches_takes_nothing_from_its_fork() -> None:
    made = Recorded(plan(step("one", "x", "y"), step("two", "y", "z")), x=1).forked("")
    made.ran("one", {"y": 1}).ran("two").run = 1
    assert said(edit(made, "")) == ["will one", "will two"]


def test_what_lies_behind_a_jump_may_run_and_where_all_ways_lead_will() -> None:
    steps = plan(
        step("pick", "x", "y", jumps=("long",)), step("short", "y", "z"), step("long", "y", "z"), step("end", "w", "v")
    )
    made = Recorded(steps, x=1, w=1).ran("pick", {"y": 1}).ran("short").ran("long").ran("end")
    assert said(rewind(made, "pick")) == ["will pick", "may short on pick", "may long on pick", "stands end"]
    assert said(edit(made, "pick", x=2, w=2)) == [
        "will pick", "may short on pick", "may long on pick", "will end",
    ]  # fmt: skip


def test_a_step_that_may_end_the_run_leaves_all_after_it_open() -> None:
    made = Recorded(plan(step("pick", "x", "y", ends=True), step("end", "w", "v")), x=1, w=1).ran("pick").ran("end")
    assert said(rewind(made, "pick")) == ["will pick", "may end on pick"]


def test_a_recorded_jump_is_taken_again() -> None:
    steps = plan(step("pick", "x", "", jumps=("last",)), step("middle", "x"), step("last", "w"))
    made = Recorded(steps, x=1, w=1).ran("pick", {}, "last").ran("last")
    assert said(edit(made, "pick", other=1)) == ["stands pick", "stands last"]


def test_a_step_as_often_as_its_loop_guard_allows_may_ask_first() -> None:
    steps = plan(step("again", "n", "n", jumps=("again",), loop_guard=2))
    made = Recorded(steps, n=0).ran("again", {"n": 1}, "again")
    second = made.target("again", n=7)
    made.ran("again", {"n": 2})
    assert said(edit(made, "", n=7)) == ["will again", "may again on again"]
    at_the_end = replace(second, path=made.history().head.path, next_step="")
    assert said(impact(made.history(), at_the_end)) == []
    told = impact(made.history(), replace(second, branched=True))
    assert [(row.verdict, row.why, row.asks) for row in told.ahead][:1] == [("will", "input", False)]


def test_a_refused_output_may_be_taken_back_to_what_made_its_input() -> None:
    steps = plan(
        step("make", "", "part"), step("join", "part world", "whole", validators=("fits",), rings=1),
        step("tell", "whole", "text"),
    )  # fmt: skip
    made = Recorded(steps, world=1).ran("make").ran("join").ran("tell")
    assert said(edit(made, "", world=2)) == [
        "may make on join", "will join", "may make on join", "may join on join", "may tell on join",
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


def test_nothing_is_certain_behind_a_gate_to_which_the_run_may_go() -> None:
    ways = plan(step("a", "x", "y", jumps=("c",)), gate("g", "z", asks=True), step("c", "z", "w"))
    made = Recorded(ways, x=1, z=1).ran("a", {"y": 1}, "c").ran("c")
    assert said(rewind(made, "a")) == ["will a", "may ask g on a", "may c on a"]
