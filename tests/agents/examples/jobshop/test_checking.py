"""What the checker finds in schedules that cannot be worked, and that it finds nothing in those that can."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from agents.examples.jobshop import check
from agents.examples.jobshop.shop import Downtime, Shop, make_schedule, read_shop

from . import made_up_shops as shops
from .made_up_shops import THREE

SHOP = read_shop(THREE)
GOOD = [
    [0, 0, 0, 0, 3, 0], [0, 1, 1, 4, 6, 0], [0, 2, 2, 9, 11, 0],
    [1, 0, 0, 3, 5, 0], [1, 1, 2, 5, 6, 0], [1, 2, 1, 6, 10, 0],
    [2, 0, 1, 0, 4, 0], [2, 1, 2, 6, 9, 0], [2, 2, 0, 9, 10, 0],
]  # fmt: skip
STOP = Downtime(machine=1, since=2, until=5)  # machine 1 stands still while job 2 is on it
MENDED = [
    [0, 0, 0, 0, 3, 0], [0, 1, 1, 7, 9, 1], [0, 2, 2, 12, 14, 1],
    [1, 0, 0, 3, 5, 0], [1, 1, 2, 5, 6, 0], [1, 2, 1, 9, 13, 1],
    [2, 0, 1, 0, 7, 0], [2, 1, 2, 7, 10, 1], [2, 2, 0, 10, 11, 1],
]  # fmt: skip


def with_row(rows: list[list[int]], *changed: int) -> list[list[int]]:
    """The rows with one of them put in the place of that operation's."""
    return [list(changed) if row[:2] == list(changed[:2]) else row for row in rows]


def faults(rows: list[list[int]], **given: Any) -> list[str]:
    return check.find_faults(SHOP.jobs, rows, **given)


def test_schedules_that_can_be_worked_have_no_fault() -> None:
    assert faults(GOOD) == []
    assert faults(MENDED, stop=STOP, before=GOOD) == []


@pytest.mark.parametrize(("rows", "fault"), [
    (GOOD[1:], "Operation 0 of job 0 is there 0 times."),
    ([*GOOD, GOOD[0]], "Operation 0 of job 0 is there 2 times."),
    ([*GOOD, [7, 0, 0, 20, 21, 0]], "There is no operation 0 of job 7."),
    (with_row(GOOD, 0, 0, 2, 0, 3, 0), "The operation 0 of job 0 is on machine 2; it needs machine 0."),
    (with_row(GOOD, 0, 2, 2, 9, 10, 0), "The operation 2 of job 0 takes 1; it needs 2."),
    (with_row(GOOD, 0, 0, 0, -1, 2, 0), "The operation 0 of job 0 starts before the beginning, at -1."),
    (with_row(GOOD, 1, 1, 2, 4, 5, 0), "The operation 1 of job 1 starts at 4, before the one before it ends at 5."),
    (with_row(GOOD, 0, 2, 2, 8, 10, 0), "Machine 2 has the operation 1 of job 2 and the operation 2 of job 0 at 8."),
])  # fmt: skip
def test_each_broken_rule_of_the_shop_is_named(rows: list[list[int]], fault: str) -> None:
    assert fault in faults(rows)


@pytest.mark.parametrize(("rows", "fault"), [
    (GOOD, "The operation 0 of job 2 takes 4; it needs 7."),
    (
        with_row(GOOD, 0, 1, 1, 4, 6, 0),
        "The operation 1 of job 0 starts at 4 on machine 1, which stands still until 5.",
    ),
    (with_row(MENDED, 0, 0, 0, 1, 4, 0), "The operation 0 of job 0 had begun at 0 and is said to begin at 1."),
    (with_row(MENDED, 1, 0, 0, 1, 3, 0), "The operation 0 of job 1 would begin at 1, which was over at 2."),
])  # fmt: skip
def test_each_broken_rule_of_a_breakdown_is_named(rows: list[list[int]], fault: str) -> None:
    assert fault in faults(rows, stop=STOP, before=GOOD)


def test_many_faults_are_told_up_to_a_number() -> None:
    rows = [[job, index, 9, 0, 1, 0] for job, operations in enumerate(SHOP.jobs) for index, _ in enumerate(operations)]
    assert len(faults(rows)) == check.MOST


@given(shops.shops())
def test_every_planned_schedule_passes(shop: Shop) -> None:
    assert check.find_faults(shop.jobs, make_schedule(shop, shops.plan(shop)).operations) == []
