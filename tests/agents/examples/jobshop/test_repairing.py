"""Schedules after a breakdown: always workable, the past as it was, and what was asked to be kept kept."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.examples.jobshop import check, solver
from agents.examples.jobshop.card import displaced_jobs
from agents.examples.jobshop.repair import (
    Situation,
    make_repair,
    rate_schedule,
    repair_locally,
    resequenced,
    shift_right,
    time_jobs,
)
from agents.examples.jobshop.shop import (
    Breakdown,
    Downtime,
    Repair,
    Shop,
    derive_downtime,
    make_schedule,
    read_shop,
)
from tests.harness.examples import many

from . import made_up_shops as shops
from . import taillard

THREE = read_shop(shops.THREE)
AS_PLANNED = [0, 4, 9, 3, 5, 6, 0, 6, 9]


def broken(machine: int, since: int, until: int, still: frozenset[int] = frozenset()) -> Situation:
    return Situation(THREE, AS_PLANNED, Downtime(machine=machine, since=since, until=until), still)


def broken_large(name: str) -> Situation:
    shop = taillard.generate(name)
    return Situation(shop, shops.plan(shop), Downtime(machine=14, since=397, until=555))


def faults(now: Situation, starts: list[int]) -> list[str]:
    """What the independent checker finds."""
    plan = make_schedule(now.shop, now.planned)
    return check.find_faults(now.shop.jobs, rows(now, starts).operations, stop=now.down, before=plan.operations)


def rows(now: Situation, starts: list[int]) -> Repair:
    return make_repair(now, starts, seconds=0.0, how="")


def retimed(now: Situation, starts: list[int]) -> set[int]:
    return {op for op, start in enumerate(starts) if start != now.planned[op]}


def test_an_operation_under_way_goes_on_when_its_machine_is_back_and_the_rest_waits() -> None:
    assert shops.plan(THREE) == AS_PLANNED
    now = broken(1, 2, 5)
    starts = shift_right(now)
    assert starts == [0, 7, 10, 3, 5, 9, 0, 7, 10]
    assert now.end(6, starts[6]) == 7
    assert faults(now, starts) == []


@pytest.mark.parametrize("now", [broken(2, 0, 4), broken(0, 50, 60)], ids=["idle", "after the end"])
def test_a_breakdown_that_is_in_no_way_moves_nothing(now: Situation) -> None:
    assert shift_right(now) == AS_PLANNED
    assert repair_locally(now, radius=3, limit=100)[0] == AS_PLANNED
    assert solver.solve(now, seconds=0.1, workers=1)[0] == AS_PLANNED
    assert (rows(now, AS_PLANNED).retimed, rows(now, AS_PLANNED).resequenced) == (0, 0)


def test_a_job_that_is_kept_stays_and_the_others_go_around_it() -> None:
    free = shift_right(broken(0, 1, 4))
    now = broken(0, 1, 4, still=frozenset({2}))
    starts = shift_right(now)
    assert free[7:] != AS_PLANNED[7:]
    assert starts[6:] == AS_PLANNED[6:]
    assert displaced_jobs(now) == []
    assert faults(now, starts) == []


def test_a_job_that_the_breakdown_itself_holds_up_is_named() -> None:
    assert displaced_jobs(broken(1, 2, 5, still=frozenset({0, 1}))) == [0, 1]


@pytest.mark.parametrize(("planned", "starts", "moved"), [
    ([0, 2, 4, 6], [6, 0, 2, 4], {0}),  # the first became the last
    ([0, 2], [4, 2], {0}),  # of two that changed places the one that kept its time did not move
    ([2, 4], [2, 0], {1}),
])  # fmt: skip
def test_as_few_operations_as_can_be_are_said_to_have_changed_places(
    planned: list[int], starts: list[int], moved: set[int]
) -> None:
    assert resequenced(Shop(machines=1, jobs=[[(0, 2)]] * len(planned)), planned, starts) == moved


def test_what_is_left_open_of_a_breakdown_is_derive_downtime() -> None:
    plan = make_schedule(THREE, AS_PLANNED)
    assert tuple(derive_downtime(Breakdown(), THREE, plan).model_dump().values()) == (1, 2, 3)
    assert tuple(derive_downtime(Breakdown(machine=2, until=9), THREE, plan).model_dump().values()) == (2, 2, 9)
    assert tuple(derive_downtime(Breakdown(until=1), THREE, plan).model_dump().values()) == (1, 0, 1)


def test_swaps_make_a_large_shop_end_sooner_always_the_same_way_and_within_their_limit() -> None:
    now = broken_large("ta01")
    starts, swaps, _ = best = repair_locally(now, radius=4, limit=400)
    assert swaps > 0
    assert now.makespan(starts) < now.makespan(shift_right(now))
    assert faults(now, starts) == []
    assert repair_locally(now, radius=4, limit=400) == best
    assert repair_locally(now, radius=9, limit=17)[2] == 17
    assert repair_locally(now, radius=9, limit=0)[0] == shift_right(now)


@given(shops.situations(), st.integers(0, 4))
def test_a_local_repair_can_always_be_worked_and_never_ends_after_the_shift(now: Situation, radius: int) -> None:
    shifted = shift_right(now)
    assert all(start >= was for start, was in zip(shifted, now.planned, strict=True))
    starts, _, _ = repair_locally(now, radius=radius, limit=60)
    assert faults(now, shifted) == []
    assert faults(now, starts) == []
    assert now.makespan(starts) <= now.makespan(shifted)
    assert rate_schedule(now, starts) <= rate_schedule(now, shifted)


@given(shops.situations())
def test_what_kept_its_time_is_never_said_to_have_changed_places(now: Situation) -> None:
    starts = repair_locally(now, radius=3, limit=60)[0]
    assert resequenced(now.shop, now.planned, starts) <= retimed(now, starts)


@given(shops.situations())
def test_jobs_that_are_kept_start_as_planned_unless_they_are_named(now: Situation) -> None:
    late = set(displaced_jobs(now))
    for starts in (shift_right(now), repair_locally(now, radius=2, limit=40)[0]):
        moved = {now.shop.job[op] for op in retimed(now, starts)}
        assert moved & set(now.still) <= late


@settings(max_examples=many(25))
@given(shops.situations())
def test_a_global_plan_can_be_worked_and_where_it_is_proven_nothing_ends_sooner(now: Situation) -> None:
    starts, bound, proven = solver.solve(now, seconds=2.0, workers=1)
    local = repair_locally(now, radius=3, limit=60)[0]
    assert faults(now, starts) == []
    assert now.makespan(starts) <= now.makespan(shift_right(now))
    if proven:
        assert now.makespan(starts) <= now.makespan(local)
        assert bound == now.makespan(starts)


def test_a_solver_without_time_hands_out_the_shift() -> None:
    now = broken_large("ta02")
    starts, _, _ = solver.solve(now, seconds=1e-9, workers=1)
    assert faults(now, starts) == []
    assert now.makespan(starts) <= now.makespan(shift_right(now))


def test_orders_that_wait_for_each_other_set_no_times() -> None:
    shop = Shop(machines=2, jobs=[[(0, 1), (1, 1)], [(1, 1), (0, 1)]])
    assert time_jobs(shop, [[1, 0], [0, 1]]) is None
    assert time_jobs(shop, [[0, 1], [0, 1]]) == [0, 1, 2, 3]
