"""Finds the effects that a run left behind on abandoned branches, and those that are due to be settled.

An effect whose execution is not on the path to the head is *unsettled*: a later execution of the same step on the same
input may still adopt it, so it is undone only once nothing ahead can, together with every effect that was made from its
result. Pure but for one query.
"""

from __future__ import annotations

from collections.abc import Sequence

from agents.models import Effect
from approvals.engine_rules import effects
from checkpoints.models import Run
from checkpoints.runs.plans import PlanSpec

from .run_path import RunPath


def of_run(run_id: int, path: RunPath) -> list[Effect]:
    """Return the run's unsettled effects, oldest first."""
    rows = Effect.objects.filter(run_id=run_id, undoes__isnull=True, status__in=effects.OPEN)
    found = rows.select_related("run").prefetch_related("undos").order_by("pk")
    return [row for row in found if abandoned(row, path)]


def abandoned(row: Effect, path: RunPath) -> bool:
    """Tell whether an effect is open and off the path. One that the run is at, and asks about, is not."""
    return effects.left_behind(row, on_path=path.holds(row.landings) or awaited(row, path))


def awaited(row: Effect, path: RunPath) -> bool:
    """Tell whether the run is still at the effect's start, with nothing but recoveries of it since."""
    after = path.after(row.base)
    return effects.awaited(row.step, None if after is None else [(place.kind, place.step) for place in after])


def in_doubt(run: Run) -> bool:
    """Tell whether the run is at an effect of which nobody knows yet whether it happened."""
    rows = list(Effect.objects.filter(run=run, undoes__isnull=True, status__in=effects.IN_DOUBT))
    return bool(rows) and run.head is not None and any(awaited(row, RunPath.to(run.head)) for row in rows)


def due(rows: Sequence[Effect], plan: PlanSpec, *, about_to: str = "") -> list[Effect]:
    """Return the effects to settle before the effect step `about_to` is performed, or the run ends; newest first."""
    chosen = effects.due(rows, plan, about_to=about_to)
    found = {*chosen, *(each for row in chosen for each in effects.made_of(row, rows, plan))}
    return sorted(found, key=lambda row: row.pk, reverse=True)
