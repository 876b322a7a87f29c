"""Converts schedules between saved rows and the planners' starts, and lists the operations that moved. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from .breakdown import Down, Situation
from .feedback import read_feedback
from .shop import Plant
from .state import Breakdown, Downtime, Feedback, Instance, Repair, Row, Schedule


def planned(plant: Plant, starts: Sequence[int]) -> Schedule:
    """Make a first schedule from the starts of the operations."""
    rows = [_row(plant, op, start, start + plant.duration[op], 0) for op, start in enumerate(starts)]
    return Schedule(machines=plant.machines, operations=rows, makespan=max((row[4] for row in rows), default=0))


def derived(breakdown: Breakdown, plant: Plant, plan: Schedule) -> Downtime:
    """The breakdown with what is left open filled in; see the agent's rule 2."""
    busy = plant.busy()
    machine = busy.index(max(busy)) if breakdown.machine is None else breakdown.machine
    lasts = max(plan.makespan // 10, 1)
    since = breakdown.since
    if since is None:
        since = plan.makespan // 4 if breakdown.until is None else min(plan.makespan // 4, breakdown.until - 1)
    return Downtime(machine=machine, since=since, until=since + lasts if breakdown.until is None else breakdown.until)


def situation(instance: Instance, plan: Schedule, downtime: Downtime, feedback: Sequence[Feedback]) -> Situation:
    """Describe what is to be decided anew, and which jobs are to be kept."""
    starts = [row[3] for row in sorted(plan.operations)]
    down = Down(downtime.machine, downtime.since, downtime.until)
    kept, _ = read_feedback(feedback, len(instance.jobs))
    return Situation(instance.plant, starts, down, frozenset(kept))


def repair(found: Situation, starts: Sequence[int], *, seconds: float, how: str) -> Repair:
    """Make a schedule after the breakdown, with what it moved."""
    plant, down = found.plant, found.down
    elsewhere = resequenced(plant, found.planned, starts)
    later = retimed(found.planned, starts)
    marks = [2 if op in elsewhere else 1 if op in later else 0 for op in range(len(plant))]
    return Repair(
        machines=plant.machines,
        operations=[_row(plant, op, start, found.end(op, start), marks[op]) for op, start in enumerate(starts)],
        downtimes=[(down.machine, down.since, down.until)],
        now=down.since,
        makespan=found.makespan(starts),
        retimed=len(later),
        resequenced=len(elsewhere),
        ms=round(seconds * 1000),
        how=how,
    )


def displaced(found: Situation) -> list[int]:
    """Return the jobs that are to be kept and cannot be: the breakdown itself holds them up."""
    return sorted(
        {found.plant.job[op] for op, (start, _) in found.fixed.items() if start != found.planned[op]} & set(found.kept)
    )


def _row(plant: Plant, op: int, start: int, end: int, moved: int) -> Row:
    return plant.job[op], plant.index[op], plant.machine[op], start, end, moved


def retimed(planned: Sequence[int], starts: Sequence[int]) -> set[int]:
    """Return the operations that start at another time than planned."""
    return {op for op, (was, now) in enumerate(zip(planned, starts, strict=True)) if was != now}


def resequenced(plant: Plant, planned: Sequence[int], starts: Sequence[int]) -> set[int]:
    """Return the operations that have to be moved to get from the old orders to the new ones.

    Each is taken out and put elsewhere. On each machine those that kept their time also kept their order, and are left
    where they are. Of the others as few as possible are taken out, which leaves the longest run that kept its order.
    """
    before = plant.in_order(range(len(plant)), planned)
    after = plant.in_order(range(len(plant)), starts)
    found: set[int] = set()
    for old, new in zip(before, after, strict=True):
        place = {op: at for at, op in enumerate(old)}
        stands = [planned[op] == starts[op] for op in new]
        kept = _heaviest_rise([place[op] for op in new], stands)
        found |= {op for at, op in enumerate(new) if at not in kept}
    return found


def _heaviest_rise(values: Sequence[int], favoured: Sequence[bool]) -> set[int]:
    """Return the places of an increasing subsequence with the most favoured places, a longest one of those."""
    weights: list[tuple[int, int]] = []  # (favoured places, places) of the best that ends at each
    back: list[int] = []
    for at, value in enumerate(values):
        earlier = [(weights[other], other) for other in range(at) if values[other] < value]
        (favour, length), came = max(earlier, default=((0, 0), -1))
        weights.append((favour + favoured[at], length + 1))
        back.append(came)
    found: set[int] = set()
    at = max(range(len(values)), key=lambda at: weights[at], default=-1)
    while at >= 0:
        found.add(at)
        at = back[at]
    return found
