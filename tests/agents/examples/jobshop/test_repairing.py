"""Shops in the standard form, what the checker finds, and schedules after a breakdown: workable, the past kept."""

from __future__ import annotations

from typing import Any

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
)
from agents.examples.jobshop.shop import Breakdown, Downtime, Shop, derive_downtime, make_schedule, read_shop
from tests.harness.examples import many

from . import made_up_shops as shops

SHOP = Shop(machines=3, jobs=[[(0, 3), (1, 2), (2, 2)], [(0, 2), (2, 1), (1, 4)], [(1, 4), (2, 3), (0, 1)]])
AS_PLANNED = [0, 4, 9, 3, 5, 6, 0, 6, 9]
GOOD = [list(row) for row in make_schedule(SHOP, AS_PLANNED).operations]
STOP = Downtime(machine=1, since=2, until=5)  # machine 1 stands still while job 2 is on it


def broken(machine: int, since: int, until: int, still: frozenset[int] = frozenset()) -> Situation:
    return Situation(SHOP, AS_PLANNED, Downtime(machine=machine, since=since, until=until), still)


def faults(now: Situation, starts: list[int]) -> list[str]:
    rows = make_repair(now, starts, seconds=0.0, how="").operations
    plan = make_schedule(now.shop, now.planned)
    return check.find_faults(now.shop.jobs, rows, stop=now.down, before=plan.operations)


def retimed(now: Situation, starts: list[int]) -> set[int]:
    return {op for op, start in enumerate(starts) if start != now.planned[op]}


def test_the_standard_form_is_read_and_every_fault_of_a_text_said_with_its_line() -> None:
    assert read_shop(shops.THREE) == SHOP
    text = "# a shop of three\n\n 3\t3  # jobs machines\n\n0 3 1 2 2 2 # first\n"
    assert read_shop(text + "0 2 2 1 1 4\r\n1 4 2 3 0 1") == SHOP
    for text, *said in [
        ("", "line 1: there is nothing in it but comments and blank lines"),
        ("3\n0 1\n", "line 1: it should hold two numbers, of jobs and of machines"),
        ("2 0\n", "line 1: a shop has 1 to 2,500 operations"),
        ("100 100\n", "line 1: a shop has 1 to 2,500 operations"),
        ("1 2\n0 1.5 1 2\n", "line 2: “1.5” is no whole number of 0 or more"),
        ("1 2\n0 1 1 2000000\n", "line 2: 2000000 is longer than 1,000,000"),
        ("2 1\n0 1\n", "line 1: it says 2 jobs, and there are 1"),
        (
            "2 2\n0 1 2 2\n0 1 1\n",
            "line 2: there is no machine 2, they count 0 to 1",
            "line 3: it should hold 2 pairs of a machine and a duration",
        ),
    ]:
        with pytest.raises(ValueError, match="line") as refused:
            read_shop(text)
        assert all(each in str(refused.value) for each in said), refused.value


def with_row(*changed: int) -> list[list[int]]:
    """The planned rows with one of them put in the place of that operation's."""
    return [list(changed) if row[:2] == list(changed[:2]) else row for row in GOOD]


@pytest.mark.parametrize(("rows", "more", "fault"), [
    (GOOD[1:], {}, "Operation 0 of job 0 is there 0 times."),
    ([*GOOD, [7, 0, 0, 20, 21, 0]], {}, "There is no operation 0 of job 7."),
    (with_row(0, 0, 2, 0, 3, 0), {}, "The operation 0 of job 0 is on machine 2; it needs machine 0."),
    (with_row(0, 2, 2, 9, 10, 0), {}, "The operation 2 of job 0 takes 1; it needs 2."),
    (with_row(0, 0, 0, -1, 2, 0), {}, "The operation 0 of job 0 starts before the beginning, at -1."),
    (with_row(1, 1, 2, 4, 5, 0), {}, "The operation 1 of job 1 starts at 4, before the one before it ends at 5."),
    (with_row(0, 2, 2, 8, 10, 0), {}, "Machine 2 has the operation 1 of job 2 and the operation 2 of job 0 at 8."),
    (GOOD, {"stop": STOP}, "The operation 0 of job 2 takes 4; it needs 7."),
    (GOOD, {"stop": STOP}, "The operation 1 of job 0 starts at 4 on machine 1, which stands still until 5."),
    (with_row(0, 0, 0, 1, 4, 0), {"stop": STOP}, "The operation 0 of job 0 had begun at 0 and is said to begin at 1."),
    (with_row(1, 0, 0, 1, 3, 0), {"stop": STOP}, "The operation 0 of job 1 would begin at 1, which was over at 2."),
])  # fmt: skip
def test_each_broken_rule_is_named(rows: list[list[int]], more: dict[str, Any], fault: str) -> None:
    assert check.find_faults(SHOP.jobs, GOOD) == []
    assert fault in check.find_faults(SHOP.jobs, rows, before=GOOD if more else [], **more)


def test_an_operation_under_way_goes_on_when_its_machine_is_back_and_the_rest_waits() -> None:
    assert shops.plan(SHOP) == AS_PLANNED
    now = broken(1, 2, 5)
    starts = shift_right(now)
    assert starts == [0, 7, 10, 3, 5, 9, 0, 7, 10]
    assert (now.end(6, starts[6]), faults(now, starts)) == (7, [])
    for idle in (broken(2, 0, 4), broken(0, 50, 60)):  # which is in no way
        assert shift_right(idle) == repair_locally(idle, radius=3, limit=100)[0] == AS_PLANNED
        assert solver.solve(idle, seconds=0.1, workers=1)[0] == AS_PLANNED
    kept = broken(0, 1, 4, still=frozenset({2}))
    assert (shift_right(kept)[6:], displaced_jobs(kept)) == (AS_PLANNED[6:], [])
    assert displaced_jobs(broken(1, 2, 5, still=frozenset({0, 1}))) == [0, 1]  # what the breakdown itself holds up
    plan = make_schedule(SHOP, AS_PLANNED)
    assert tuple(derive_downtime(Breakdown(), SHOP, plan).model_dump().values()) == (1, 2, 3)
    assert tuple(derive_downtime(Breakdown(until=1), SHOP, plan).model_dump().values()) == (1, 0, 1)


@pytest.mark.parametrize(("planned", "starts", "moved"), [
    ([0, 2, 4, 6], [6, 0, 2, 4], {0}),  # the first became the last
    ([0, 2], [4, 2], {0}),  # of two that changed places the one that kept its time did not move
])  # fmt: skip
def test_as_few_operations_as_can_be_are_said_to_have_changed_places(
    planned: list[int], starts: list[int], moved: set[int]
) -> None:
    assert resequenced(Shop(machines=1, jobs=[[(0, 2)]] * len(planned)), planned, starts) == moved


def test_swaps_make_a_large_shop_end_sooner_always_the_same_way_and_within_their_limit() -> None:
    shop = read_shop((shops.BUNDLED / "ta01.txt").read_text())
    now = Situation(shop, shops.plan(shop), Downtime(machine=14, since=397, until=555))
    starts, swaps, _ = best = repair_locally(now, radius=4, limit=400)
    assert (swaps > 0, faults(now, starts)) == (True, [])
    assert now.makespan(starts) < now.makespan(shift_right(now))
    assert repair_locally(now, radius=4, limit=400) == best
    assert repair_locally(now, radius=9, limit=17)[2] == 17
    starts, _, _ = solver.solve(now, seconds=1e-9, workers=1)  # one without time hands out the shift
    assert now.makespan(starts) <= now.makespan(shift_right(now))


@given(shops.situations(), st.integers(0, 4))
def test_a_local_repair_can_always_be_worked_and_never_ends_after_the_shift(now: Situation, radius: int) -> None:
    shifted = shift_right(now)
    assert all(start >= was for start, was in zip(shifted, now.planned, strict=True))
    starts, _, _ = repair_locally(now, radius=radius, limit=60)
    assert faults(now, shifted) == faults(now, starts) == []
    assert rate_schedule(now, starts) <= rate_schedule(now, shifted)
    assert resequenced(now.shop, now.planned, starts) <= retimed(now, starts)
    late = set(displaced_jobs(now))
    for each in (shifted, starts):  # jobs that are kept start as planned unless they are named
        assert {now.shop.job[op] for op in retimed(now, each)} & set(now.still) <= late


@settings(max_examples=many(25))
@given(shops.situations())
def test_a_global_plan_can_be_worked_and_where_it_is_proven_nothing_ends_sooner(now: Situation) -> None:
    starts, bound, proven = solver.solve(now, seconds=2.0, workers=1)
    assert faults(now, starts) == []
    assert now.makespan(starts) <= now.makespan(shift_right(now))
    if proven:
        assert bound == now.makespan(starts) <= now.makespan(repair_locally(now, radius=3, limit=60)[0])
