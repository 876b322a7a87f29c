"""Predicts what a move of a run's head does to its children: they stand, may be taken over, or are undone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from agents.models import ChildLink, Effect
from agents.session import child_runs
from agents.session.run_path import RunPath
from approvals.engine_rules import effects
from approvals.impact.result import Impact, ImpactChild, ImpactVerdict
from checkpoints.runs.plans import PlanSpec, spec_of

UNDOES = (ImpactVerdict.UNDONE, ImpactVerdict.MAY_UNDONE)


def of(
    found: Impact, rows: Sequence[ChildLink], path: RunPath, plan: PlanSpec, next_step: str
) -> tuple[ImpactChild, ...]:
    """Return what becomes of each child, of `child_runs.of_run`, if the run goes on with `next_step` after `path`."""
    reused = {row.step for row in found.ahead if row.kind == "step" and row.verdict is ImpactVerdict.STANDS}
    ahead = plan.reachable(next_step)
    fates = {row.pk: _fate(row, path, reused, ahead) for row in rows}
    done = _effects([row for row in rows if fates[row.pk] in UNDOES])
    made = []
    for row in rows:
        fate = fates[row.pk]
        if fate is None:
            continue
        spec = {step.name: step for step in spec_of(row.run.plan).steps}
        mine = done[row.run_id]
        can = [each for each in mine if not each.irreversible and each.step in spec and spec[each.step].undo]
        undone = tuple(dict.fromkeys(each.step for each in can))
        cannot = tuple(dict.fromkeys(each.step for each in mine if each not in can))
        made.append(ImpactChild(run=row.run_id, fate=fate, undone=undone, cannot=cannot))
    return tuple(made)


def _fate(row: ChildLink, path: RunPath, reused: set[str], ahead: set[str]) -> ImpactVerdict | None:
    """Return the fate of one child; None where nothing follows for it. A moved run begins its next step anew."""
    if path.holds(row.landings) or (row.step in reused and row.landings and not row.undone):
        return ImpactVerdict.STANDS
    if row.step in ahead and not row.lost:
        return ImpactVerdict.MAY_UNDONE
    return ImpactVerdict.UNDONE if child_runs.is_left(row) else None


def _effects(rows: Sequence[ChildLink]) -> dict[int, list[Effect]]:
    """Return the effects of these children that are done, or may be, by their runs."""
    found: dict[int, list[Effect]] = defaultdict(list)
    done = Effect.objects.filter(run__in=[row.run_id for row in rows], undoes__isnull=True, status__in=effects.OPEN)
    for each in done.order_by("pk") if rows else ():
        found[each.run_id].append(each)
    return found
