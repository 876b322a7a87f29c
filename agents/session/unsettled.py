"""Which effects a run has left behind on an abandoned branch, and when they have to be settled.

An effect counts where its execution is on the path to the head. Any other is *unsettled*: a later execution
of the same step on the same input may still adopt it, so it is undone only once nothing ahead can, and with it
every effect that was made of what it gave. Pure but for the one query.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agents.models import Effect
from checkpoints.runs.plans import PlanSpec

from .path import Path

Status = Effect.Status
IN_DOUBT = (Status.INTENDED, Status.UNKNOWN)
OPEN = (*IN_DOUBT, Status.DONE)
LANDED = (Status.DONE, Status.KEPT)  # what a later execution may adopt


def of_run(run_id: int, path: Path) -> list[Effect]:
    """Return the run's unsettled effects, oldest first."""
    rows = Effect.objects.filter(run_id=run_id, undoes__isnull=True, status__in=OPEN)
    found = rows.select_related("run").prefetch_related("undos").order_by("pk")
    return [row for row in found if abandoned(row, path)]


def abandoned(row: Effect, path: Path) -> bool:
    """Tell whether an open effect is off the path. One at which the run waits, and about which it asks, is not."""
    if row.again:
        return True
    return not (path.holds(row.landings) or awaited(row, path))


def awaited(row: Effect, path: Path) -> bool:
    """Tell whether the run still is where the effect was started, and waits to hear of it."""
    after = path.after(row.base)
    return after is not None and all(place.kind == "recovery" and place.step == row.step for place in after)


def due(rows: Sequence[Effect], plan: PlanSpec, *, about_to: str = "") -> list[Effect]:
    """Return those to settle before the effect step `about_to` is performed, or the run ends; newest first.

    An effect that a step ahead may still adopt waits. An effect of an earlier attempt at the same step never waits, nor
    does an undo that was begun.
    """
    later = _later(plan, about_to) if about_to else set()
    chosen = [row for row in rows if row.again or row.going or row.step not in later or _in_doubt(row, about_to)]
    return _newest_first(_with_dependents(chosen, rows, plan))


def _later(plan: PlanSpec, step: str) -> set[str]:
    """Return the steps that may run after `step` without anybody's decision."""
    return {name for after in plan.successors(step) for name in plan.reachable(after)}


def _in_doubt(row: Effect, step: str) -> bool:
    return row.step == step and row.status in IN_DOUBT


def _with_dependents(chosen: Iterable[Effect], rows: Sequence[Effect], plan: PlanSpec) -> set[Effect]:
    """Return `chosen`, with the later ones of `rows` that were made of what one of these gave."""
    known = {step.name for step in plan.steps}
    found = set(chosen)
    for row in sorted(found, key=lambda each: each.pk):
        of = plan.dependents(row.step) if row.step in known else set()
        found |= {each for each in rows if each.pk > row.pk and each.step in of}
    return found


def _newest_first(rows: Iterable[Effect]) -> list[Effect]:
    return sorted(rows, key=lambda row: row.pk, reverse=True)
