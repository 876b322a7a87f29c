"""Steps: what runs again, what may, and what stands."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from approvals.impact import Impact, ImpactRow, impact
from approvals.impact.facts import MoveTarget
from checkpoints.values.ops import Append, Splice

from .model import Engine
from .small_plans import edit, engine, fork, gate, gives, plan, rewind, said, step

CHAIN = plan(step("find", "name", "order"), step("price", "order", "sum"), step("tell", "sum name", "text"))


def ordered(name: str = "A") -> tuple[Engine, int]:
    made = engine(CHAIN, {
        "find": lambda engine, name: ({"order": name.lower()}, None),
        "price": lambda engine, order: ({"sum": len(order)}, None),
        "tell": lambda engine, sum, name: ({"text": f"{name} {sum}"}, None),
    })  # fmt: skip
    run = made.start(name=name)
    made.drive(run)
    return made, run


def test_the_step_a_person_sends_the_run_back_to_runs_and_what_reads_it_may() -> None:
    made, run = ordered()
    assert said(rewind(made, run, "find")) == ["will find", "may price on find", "may tell on find"]


def test_before_the_target_everything_stands() -> None:
    made, run = ordered()
    assert said(rewind(made, run, "tell"), kept=True) == ["stands find", "stands price", "will tell"]


def test_an_edit_runs_only_what_reads_the_change() -> None:
    made, run = ordered()
    assert said(edit(made, run, "find", other=1)) == ["stands find", "stands price", "stands tell"]
    assert said(edit(made, run, "price", sum=99)) == ["stands price", "stands tell"]


def test_equal_outputs_stop_the_ripple_but_nobody_knows_that_before() -> None:
    made, run = ordered("A")
    told = edit(made, run, "find", name="a")
    assert said(told) == ["will find", "may price on find", "may tell on find"]
    made.move(run, at_first(made), "edit", {"name": "a"})
    made.trace.clear()
    made.drive(run)
    assert made.trace == [("ran", "find"), ("reused", "price"), ("ran", "tell")]


def at_first(made: Engine) -> str:
    return next(iter(made.points))


def test_an_edit_back_to_what_it_was_reuses_what_was_done_then() -> None:
    made, run = ordered("A")
    made.move(run, at_first(made), "edit", {"name": "BB"})
    made.drive(run)
    assert said(edit(made, run, "find", name="A")) == ["stands find", "stands price", "stands tell"]


def test_a_step_that_looks_outside_the_state_runs_whatever_it_reads() -> None:
    made = engine(
        plan(step("look", "", "seen", reads_world=True), step("act", "seen", "done")), {"look": gives(seen=1)}
    )
    run = made.start()
    made.drive(run)
    assert said(edit(made, run, "look", other=1)) == ["will look", "may act on look"]


def test_other_code_runs_anew() -> None:
    made, run = ordered()
    find, price, tell = CHAIN.steps
    made.plan = plan(find, replace(price, code_hash="cd"), tell)
    assert said(edit(made, run, "find", other=1)) == ["stands find", "will price", "may tell on price"]


def test_feedback_is_like_nothing_recorded_so_what_reads_it_certainly_runs() -> None:
    made = engine(
        plan(step("draft", "feedback", "text"), step("check", "text feedback", "ok")), {"draft": gives(text=1)}
    )
    run = made.start(feedback=[])
    made.drive(run)
    target = made.target_of(run, at_first(made), "rewind", {})
    told = impact(made.history(run), _novel(target, "feedback"))
    assert said(told) == ["will draft", "will check"]


def _novel(target: MoveTarget, name: str) -> MoveTarget:
    return replace(target, novel=frozenset({name}))


LISTS = [
    (Append([3]), "will sum"),  # [9, 3], and not [1, 3]
    (Splice(0, 1, [3]), "stands sum"),  # [3] either way
    ([1, 3], "stands sum"),
]


@pytest.mark.parametrize(("write", "after"), LISTS)
def test_a_recorded_change_of_a_list_is_made_to_the_list_that_is_there(write: Any, after: str) -> None:
    steps = plan(step("grow", "", "items"), step("sum", "items", "total"))
    made = engine(steps, {"grow": gives(items=write)})
    run = made.start(items=[1])
    made.drive(run)
    assert said(edit(made, run, "grow", items=[9])) == ["stands grow", after]


def test_a_splice_that_does_not_fit_the_list_leaves_it_open_what_happens() -> None:
    made = engine(plan(step("cut", "", "items"), step("sum", "items", "total")), {"cut": gives(items=Splice(1, 1, []))})
    run = made.start(items=[1, 2])
    made.drive(run)
    assert said(edit(made, run, "cut", items=[9])) == ["may cut", "may sum"]


def test_a_fork_reuses_what_its_origin_has_done() -> None:
    made, run = ordered()
    assert said(fork(made, run, "find")) == ["stands find", "stands price", "stands tell"]
    assert said(fork(made, run, "price", name="B")) == ["stands price", "will tell"]


def test_a_run_without_branches_takes_nothing_from_its_fork() -> None:
    made = engine(plan(step("one", "x", "y"), step("two", "y", "z")), {"one": lambda engine, x: ({"y": x}, None)})
    run = made.start(x=1)
    made.drive(made.fork(next(iter(made.points)), {}))
    told = impact(made.history(run), made.target_of(run, next(iter(made.points)), "edit", {}))
    assert said(told) == ["will one", "will two"]


def test_what_lies_behind_a_jump_may_run_and_where_all_ways_lead_will() -> None:
    steps = plan(
        step("pick", "x", "y", jumps=("long",)), step("short", "y", "z"), step("long", "y", "z"), step("end", "w", "v")
    )
    made = engine(steps, {"pick": gives(y=1)})
    run = made.start(x=1, w=1)
    made.drive(run)
    assert said(rewind(made, run, "pick")) == ["will pick", "may short on pick", "may long on pick", "stands end"]
    assert said(edit(made, run, "pick", x=2, w=2)) == [
        "will pick", "may short on pick", "may long on pick", "will end",
    ]  # fmt: skip


def test_a_step_that_may_end_the_run_leaves_all_after_it_open() -> None:
    made = engine(plan(step("pick", "x", "y", ends=True), step("end", "w", "v")), {})
    run = made.start(x=1, w=1)
    made.drive(run)
    assert said(rewind(made, run, "pick")) == ["will pick", "may end on pick"]


def test_a_recorded_jump_is_taken_again() -> None:
    steps = plan(step("pick", "x", "", jumps=("last",)), step("middle", "x"), step("last", "w"))
    made = engine(steps, {"pick": lambda engine, x: ({}, "last")})
    run = made.start(x=1, w=1)
    made.drive(run)
    assert said(edit(made, run, "pick", other=1)) == ["stands pick", "stands last"]


def test_a_step_as_often_as_its_loop_guard_allows_may_ask_first() -> None:
    steps = plan(step("again", "n", "n", jumps=("again",), loop_guard=2))
    made = engine(steps, {"again": lambda engine, n: ({"n": n + 1}, "again" if n < 1 else None)})
    run = made.start(n=0)
    made.drive(run)
    first = next(iter(made.points))
    told = impact(made.history(run), made.target_of(run, first, "edit", {"n": 7}))
    assert said(told) == ["will again", "may again on again"]
    told = impact(made.history(run), made.target_of(run, made.runs[run].head, "edit", {"n": 7}))
    assert said(told) == []
    second = impact(made.history(run), made.target_of(run, second_of(made), "edit", {"n": 7}))
    assert [(row.verdict, row.why, row.asks) for row in second.ahead][:1] == [("will", "input", False)]


def second_of(made: Engine) -> str:
    return list(made.points)[1]


def test_a_refused_output_may_be_taken_back_to_what_made_its_input() -> None:
    steps = plan(
        step("make", "", "part"), step("join", "part world", "whole", validators=("fits",), rings=1),
        step("tell", "whole", "text"),
    )  # fmt: skip
    made = engine(steps, {})
    run = made.start(world=1)
    made.drive(run)
    told = impact(made.history(run), made.target_of(run, at_first(made), "edit", {"world": 2}))
    assert said(told) == [
        "may make on join", "will join", "may make on join", "may join on join", "may tell on join",
    ]  # fmt: skip


def test_how_long_a_step_took_last_is_told_and_changes_no_digest() -> None:
    made, run = ordered()
    told = rewind(made, run, "find")
    assert [row.took for row in told.ahead] == [timedelta(seconds=1)] * 3
    slower = Impact(rows=tuple(_slower(row) for row in told.rows), asks=told.asks, ends=told.ends)
    assert slower.digest() == told.digest()
    assert slower.to_json()["rows"][0]["took"] == 9.0
    assert rewind(made, run, "price").digest() != told.digest()


def _slower(row: ImpactRow) -> ImpactRow:
    return replace(row, took=timedelta(seconds=9))


def test_each_turn_of_a_loop_takes_the_output_of_its_own_turn() -> None:
    drawn = iter([1, 2])
    loop = plan(step("draw", "", "x"), step("look", "x", "", jumps=("draw",)))
    made = engine(loop, {
        "draw": lambda engine: ({"x": next(drawn)}, None),
        "look": lambda engine, x: ({}, "draw" if x == 1 else None),
    })  # fmt: skip
    run = made.start(other=0)
    made.drive(run)
    told = impact(made.history(run), made.target_of(run, at_first(made), "edit", {"other": 1}))
    assert said(told) == ["stands draw", "stands look"] * 2


def test_nothing_is_certain_behind_a_gate_to_which_the_run_may_go() -> None:
    ways = plan(step("a", "x", "y", jumps=("c",)), gate("g", "z", asks=True), step("c", "z", "w"))
    made = engine(ways, {"a": lambda engine, x: ({"y": x}, "c")})
    run = made.start(x=1, z=1)
    made.drive(run)
    assert said(rewind(made, run, "a")) == ["will a", "may ask g on a", "may c on a"]
