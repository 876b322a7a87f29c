"""Schedules after a breakdown: always workable, the past as it was, and what was asked to be kept kept."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.examples.jobshop import check, planning, solver
from agents.examples.jobshop import local as jobshop_local
from agents.examples.jobshop.breakdown import Down, Situation
from agents.examples.jobshop.reading import read_shop
from agents.examples.jobshop.schedules import derived, displaced, planned, repair, resequenced, retimed
from agents.examples.jobshop.shop import Plant
from agents.examples.jobshop.state import Breakdown, Repair
from tests.harness.examples import many

from . import made_up_shops as shops
from . import taillard

SHOP = read_shop(shops.THREE)
THREE = Plant(SHOP.machines, SHOP.jobs)
AS_PLANNED = [0, 4, 9, 3, 5, 6, 0, 6, 9]


def broken(machine: int, since: int, until: int, **more: frozenset[int]) -> Situation:
    return Situation(THREE, AS_PLANNED, Down(machine, since, until), **more)


def faults(now: Situation, starts: list[int]) -> list[str]:
    """What the independent checker finds."""
    plan = planned(now.plant, now.planned)
    made = rows(now, starts)
    stop = (now.down.machine, now.down.since, now.down.until)
    return check.find_faults(now.plant.jobs, made.operations, stop=stop, before=plan.operations)


def rows(now: Situation, starts: list[int]) -> Repair:
    return repair(now, starts, seconds=0.0, how="")


def test_the_plan_of_the_example_is_the_one_that_these_tests_speak_of() -> None:
    assert shops.planned(THREE) == AS_PLANNED


def test_an_operation_under_way_goes_on_when_its_machine_is_back_and_the_rest_waits() -> None:
    now = broken(1, 2, 5)
    starts = jobshop_local.shifted(now)
    assert starts == [0, 7, 10, 3, 5, 9, 0, 7, 10]
    assert now.end(6, starts[6]) == 7
    assert faults(now, starts) == []


def test_a_breakdown_of_a_machine_that_has_nothing_to_do_moves_nothing() -> None:
    now = broken(2, 0, 4)
    assert jobshop_local.shifted(now) == AS_PLANNED
    assert (rows(now, AS_PLANNED).retimed, rows(now, AS_PLANNED).resequenced) == (0, 0)


def test_a_breakdown_after_the_end_moves_nothing() -> None:
    now = broken(0, 50, 60)
    assert now.free == []
    assert jobshop_local.repaired(now, radius=3, limit=100).starts == AS_PLANNED
    assert solver.solved(now, seconds=0.1, workers=1).starts == AS_PLANNED


def test_a_job_that_is_kept_stays_and_the_others_go_around_it() -> None:
    free = jobshop_local.shifted(broken(0, 1, 4))
    now = broken(0, 1, 4, kept=frozenset({2}))
    starts = jobshop_local.shifted(now)
    assert free[7:] != AS_PLANNED[7:]
    assert starts[6:] == AS_PLANNED[6:]
    assert displaced(now) == []
    assert faults(now, starts) == []


def test_a_job_that_the_breakdown_itself_holds_up_is_named() -> None:
    assert displaced(broken(1, 2, 5, kept=frozenset({0, 1}))) == [0, 1]


def test_as_few_operations_as_can_be_are_said_to_have_changed_places() -> None:
    plant = Plant(1, [[(0, 2)]] * 4)
    starts = [6, 0, 2, 4]  # the first became the last
    assert resequenced(plant, [0, 2, 4, 6], starts) == {0}
    assert retimed([0, 2, 4, 6], starts) == {0, 1, 2, 3}


def test_of_two_that_changed_places_the_one_that_kept_its_time_is_not_said_to_have_moved() -> None:
    plant = Plant(1, [[(0, 2)]] * 2)
    assert resequenced(plant, [0, 2], [4, 2]) == {0}
    assert resequenced(plant, [2, 4], [2, 0]) == {1}


def test_what_is_left_open_of_a_breakdown_is_derived() -> None:
    plan = planned(THREE, AS_PLANNED)
    assert tuple(derived(Breakdown(), THREE, plan).model_dump().values()) == (1, 2, 3)
    assert tuple(derived(Breakdown(machine=2, until=9), THREE, plan).model_dump().values()) == (2, 2, 9)
    assert tuple(derived(Breakdown(until=1), THREE, plan).model_dump().values()) == (1, 0, 1)


def test_swaps_make_a_large_shop_end_sooner_than_shifting_alone_and_always_the_same_way() -> None:
    plant = Plant(15, taillard.generate(*taillard.SEEDS["ta01"][:2]))
    now = Situation(plant, shops.planned(plant), Down(14, 397, 555))
    found = jobshop_local.repaired(now, radius=4, limit=400)
    assert found.swaps > 0
    assert now.makespan(found.starts) < now.makespan(jobshop_local.shifted(now))
    assert faults(now, found.starts) == []
    assert jobshop_local.repaired(now, radius=4, limit=400) == found


def test_no_more_swaps_are_tried_than_are_allowed() -> None:
    plant = Plant(15, taillard.generate(*taillard.SEEDS["ta01"][:2]))
    now = Situation(plant, shops.planned(plant), Down(14, 397, 555))
    assert jobshop_local.repaired(now, radius=9, limit=17).tried == 17
    assert jobshop_local.repaired(now, radius=9, limit=0).starts == jobshop_local.shifted(now)


@given(shops.situations(), st.integers(0, 4))
def test_a_local_repair_can_always_be_worked_and_never_ends_after_the_shift(now: Situation, radius: int) -> None:
    shifted = jobshop_local.shifted(now)
    found = jobshop_local.repaired(now, radius=radius, limit=60)
    assert faults(now, shifted) == []
    assert faults(now, found.starts) == []
    assert now.makespan(found.starts) <= now.makespan(shifted)
    assert jobshop_local.worth(now, found.starts) <= jobshop_local.worth(now, shifted)


@given(shops.situations())
def test_a_shift_begins_nothing_sooner_than_planned(now: Situation) -> None:
    assert all(start >= was for start, was in zip(jobshop_local.shifted(now), now.planned, strict=True))


@given(shops.situations())
def test_what_kept_its_time_is_never_said_to_have_changed_places(now: Situation) -> None:
    starts = jobshop_local.repaired(now, radius=3, limit=60).starts
    assert resequenced(now.plant, now.planned, starts) <= retimed(now.planned, starts)


@given(shops.situations())
def test_jobs_that_are_kept_start_as_planned_unless_they_are_named(now: Situation) -> None:
    late = set(displaced(now))
    for starts in (jobshop_local.shifted(now), jobshop_local.repaired(now, radius=2, limit=40).starts):
        moved = {now.plant.job[op] for op in retimed(now.planned, starts)}
        assert moved & set(now.kept) <= late


@settings(max_examples=many(25))
@given(shops.situations())
def test_a_global_plan_can_be_worked_and_where_it_is_proven_nothing_ends_sooner(now: Situation) -> None:
    found = solver.solved(now, seconds=2.0, workers=1)
    local = jobshop_local.repaired(now, radius=3, limit=60).starts
    assert faults(now, found.starts) == []
    assert now.makespan(found.starts) <= now.makespan(jobshop_local.shifted(now))
    if found.proven:
        assert now.makespan(found.starts) <= now.makespan(local)
        assert found.bound == now.makespan(found.starts)


def test_a_solver_without_time_hands_out_the_shift() -> None:
    plant = Plant(15, taillard.generate(*taillard.SEEDS["ta02"][:2]))
    now = Situation(plant, shops.planned(plant), Down(14, 397, 555))
    found = solver.solved(now, seconds=1e-9, workers=1)
    assert faults(now, found.starts) == []
    assert now.makespan(found.starts) <= now.makespan(jobshop_local.shifted(now))


@pytest.mark.parametrize("orders", [[[1, 0], [0, 1]], [[0], [0, 1]], [[0, 0], [0, 1]]])
def test_orders_that_wait_for_each_other_are_refused(orders: list[list[int]]) -> None:
    plant = Plant(2, [[(0, 1), (1, 1)], [(1, 1), (0, 1)]])
    with pytest.raises(planning.OrdersRefused):
        planning.timed(plant, orders)
