"""Predicts what becomes of the runs that a run started: they stand, may be taken over, are undone, or are cancelled.

A fork ends none of its origin's. It reads what completed ones did, and starts the others anew.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from uuid import UUID

from agents.models import ChildLink, Effect
from agents.session import child_runs
from agents.session.run_path import RunPath
from approvals.impact.result import ENDING, ChildVerdict, Impact, ImpactChild, ImpactVerdict
from checkpoints.models import Run
from checkpoints.runs.plans import PlanSpec, spec_of

OnPath = Callable[[Sequence[UUID]], bool]


def of_move(
    found: Impact, rows: Sequence[ChildLink], on_path: OnPath, plan: PlanSpec, next_step: str,
    *, landing: Collection[int] = (), withdrawn: Collection[int] = (),
) -> tuple[ImpactChild, ...]:  # fmt: skip
    """Return what becomes of each child, of `child_runs.of_run`, if the run goes on with `next_step` after a path.

    `landing`: the rows of those on which the path will count; `withdrawn`: the runs that are undone for certain.
    """
    reused, ahead = _reused(found), plan.reachable(next_step)
    kept = child_runs.kept_for_kin(rows).union(landing)
    gone = [row for row in rows if row.run_id in withdrawn and row.pk not in kept and child_runs.is_left(row)]
    others = [row for row in rows if row not in gone]
    fates = [(row, _fate(row, on_path, reused, ahead, row.pk in kept)) for row in others]
    return _told([*((row, ChildVerdict.UNDONE) for row in gone), *fates])


def of_failure(rows: Sequence[ChildLink], head: RunPath) -> tuple[ImpactChild, ...]:
    """Return what becomes of each child if the run ends at its head without having completed."""

    kept = child_runs.kept_for_kin(rows)

    def fate(row: ChildLink) -> ChildVerdict | None:
        if row.pk in kept or child_runs.stands(row, head):
            return ChildVerdict.CANCELLED if row.run.status in Run.LIVE else ChildVerdict.STANDS
        return ChildVerdict.UNDONE if child_runs.is_left(row) else None

    return _told([(row, fate(row)) for row in rows])


def of_fork(
    found: Impact, rows: Sequence[ChildLink], on_path: OnPath, plan: PlanSpec, next_step: str
) -> tuple[ImpactChild, ...]:
    """Return what a fork makes of each child of its lineage."""
    reused, ahead = _reused(found), plan.reachable(next_step)
    read = {(row.step, bytes(row.digest)) for row in rows if _readable(row)}

    def fate(row: ChildLink) -> ChildVerdict | None:
        if on_path(row.landings) or _stays(row, reused):
            return ChildVerdict.STANDS
        if row.step not in ahead:
            return None
        if _readable(row):
            return ChildVerdict.READ
        return None if (row.step, bytes(row.digest)) in read else ChildVerdict.ANEW

    return _told([(row, fate(row)) for row in rows])


def _fate(row: ChildLink, on_path: OnPath, reused: set[str], ahead: set[str], kept: bool) -> ChildVerdict | None:
    """Return the fate of one child; None where nothing follows for it. A moved run begins its next step anew.

    `kept`: another run of the lineage counts on it, or the path will.
    """
    if kept or on_path(row.landings) or _stays(row, reused):
        return ChildVerdict.STANDS
    if row.step in ahead and not row.lost:
        return ChildVerdict.MAY_UNDONE
    return ChildVerdict.UNDONE if child_runs.is_left(row) else None


def _reused(found: Impact) -> set[str]:
    """Return the steps ahead whose recorded output is used."""
    return {row.step for row in found.ahead if row.kind == "step" and row.verdict is ImpactVerdict.STANDS}


def _stays(row: ChildLink, reused: set[str]) -> bool:
    return row.step in reused and bool(row.landings) and not row.undone


def _readable(row: ChildLink) -> bool:
    """Tell whether a fork may read its result; as `child_runs.done_for_kin`."""
    return row.run.status == Run.Status.COMPLETED and not row.undone


def _told(fates: Sequence[tuple[ChildLink, ChildVerdict | None]]) -> tuple[ImpactChild, ...]:
    done = child_runs.done_by([row.run_id for row, fate in fates if fate in ENDING])
    return tuple(_child(row, fate, done.get(row.run_id, [])) for row, fate in fates if fate is not None)


def _child(row: ChildLink, fate: ChildVerdict, done: Sequence[Effect]) -> ImpactChild:
    """Return one child with its effects that are taken back, and those that stay."""
    back = [each for each in done if fate is not ChildVerdict.CANCELLED and _undoable(each)]
    undone = tuple(dict.fromkeys(each.step for each in back))
    cannot = tuple(dict.fromkeys(each.step for each in done if each not in back))
    return ImpactChild(run=row.run_id, fate=fate, undone=undone, cannot=cannot)


def _undoable(row: Effect) -> bool:
    step = next((each for each in spec_of(row.run.plan).steps if each.name == row.step), None)
    return not row.irreversible and step is not None and bool(step.undo)
