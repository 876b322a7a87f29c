"""Between schedules as they are saved, in rows, and as the planners work with them, in starts. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from . import feedback as jobshop_feedback
from . import moves as jobshop_moves
from .breakdown import Down, Situation
from .shop import Plant
from .state import Breakdown, Downtime, Feedback, Instance, Repair, Row, Schedule


def planned(plant: Plant, starts: Sequence[int]) -> Schedule:
    """A first schedule."""
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
    """What is to be decided anew, and which jobs are to be kept."""
    starts = [row[3] for row in sorted(plan.operations)]
    down = Down(downtime.machine, downtime.since, downtime.until)
    kept = jobshop_feedback.heeded(feedback, len(instance.jobs)).kept
    return Situation(instance.plant, starts, down, frozenset(kept))


def repair(found: Situation, starts: Sequence[int], *, seconds: float, how: str) -> Repair:
    """A schedule after the breakdown, with what it moved."""
    plant, down = found.plant, found.down
    elsewhere = jobshop_moves.resequenced(plant, found.planned, starts)
    later = jobshop_moves.retimed(found.planned, starts)
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
    """The jobs that are to be kept and cannot be: the breakdown itself holds them up."""
    return sorted(
        {found.plant.job[op] for op, (start, _) in found.fixed.items() if start != found.planned[op]} & set(found.kept)
    )


def _row(plant: Plant, op: int, start: int, end: int, moved: int) -> Row:
    return plant.job[op], plant.index[op], plant.machine[op], start, end, moved
