"""The benchmark's own reading of the rules: it must be able to find fault, and to find none."""

from __future__ import annotations

import pytest

from agents.examples.jobshop import local
from agents.examples.jobshop.state import Repair, Row
from benchmarks.examples import jobshop as bench

TA03 = bench.FOLDER / "ta03.txt"


def moved(repair: Repair, at: int, *, by: int) -> Repair:
    """The schedule with one operation pushed."""
    rows: list[Row] = list(repair.operations)
    job, index, machine, start, end, mark = rows[at]
    rows[at] = (job, index, machine, start + by, end + by, mark)
    return repair.model_copy(update={"operations": rows})


def test_a_schedule_that_can_be_worked_passes_and_each_damage_to_it_is_found() -> None:
    plan, downtime, now = bench.broken(TA03)
    repair = bench.mended(now, local.shifted)
    assert bench.broken_rules(TA03, plan, downtime, repair) == []
    first = min(range(len(plan.operations)), key=lambda at: plan.operations[at][3])
    assert bench.broken_rules(TA03, plan, downtime, moved(repair, first, by=1))
    for at, row in enumerate(repair.operations):
        if row[1] and row[3] == repair.operations[at - 1][4]:  # right behind the one before it
            assert bench.broken_rules(TA03, plan, downtime, moved(repair, at, by=-1))
            break
    lost = repair.model_copy(update={"operations": repair.operations[1:]})
    assert "not each operation once" in bench.broken_rules(TA03, plan, downtime, lost)
    idle = repair.model_copy(update={"operations": [(*row[:4], row[4] + 1, 0) for row in repair.operations]})
    assert bench.broken_rules(TA03, plan, downtime, idle)


@pytest.mark.parametrize("name", ["ta01", "ta10"])
def test_a_breakdown_is_the_same_each_time(name: str) -> None:
    file = bench.FOLDER / f"{name}.txt"
    assert bench.broken(file)[1] == bench.broken(file)[1]
