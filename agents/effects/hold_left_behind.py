"""Holds the data of effects that a move of the run's head leaves behind, until they are settled."""

from __future__ import annotations

from agents.models import Effect
from agents.session import run_path
from agents.session.run_path import RunPath
from approvals.engine_rules import effects
from checkpoints.actors import Actor
from checkpoints.models import Hold, Run
from checkpoints.runs.plans import StepSpec
from checkpoints.store.loading import CheckpointHeader


def lock(run: Run) -> None:
    """Lock the run's effect rows. A transaction that locks gates or the run too does this first."""
    Effect.objects.lock(run.pk)


def lock_lineage(run: Run) -> None:
    """Lock the effect rows of the run's whole lineage: forks depend on one another's effects."""
    kin = Run.objects.of_lineage(run.lineage).values("pk")
    list(Effect.objects.select_for_update().filter(run__in=kin).order_by("pk").values_list("pk"))


def drop_orders(run: Run) -> None:
    """Drop the orders to do effects of the run again that were not carried out yet when a person moved it."""
    Effect.objects.filter(run=run, again=True).update(again=False)


def hold(run: Run, path: RunPath, *, by: Actor) -> list[Effect]:
    """Make a hold on the start state of each unsettled effect, which its undo reads; return these, oldest first."""
    rows = run_path.of_run(run.pk, path)
    for row in rows:
        reason = f"{row.step} is not settled yet"
        Hold.objects.make(
            run=run, checkpoint=row.base, kind=Hold.Kind.EFFECT, subject=row.subject, reason=reason, by=by
        )
    return rows


def sent_to(run_id: int, spec: StepSpec, digest: bytes, path: RunPath) -> Effect | None:
    """Return the effect that is redone if the run is sent back to `spec` with this input at the end of `path`."""
    if spec.kind != "effect":
        return None
    row = Effect.objects.newest(run_id, spec.name, digest, path.occurrences(spec.name, digest))
    return row if row is not None and row.adoptable else None


def gone(run: Run, path: RunPath) -> tuple[Effect, CheckpointHeader] | None:
    """Return the first effect of `path` that is undone or being undone, with its checkpoint; None for none."""
    kin = Run.objects.of_lineage(run.lineage)
    rows = Effect.objects.filter(run__in=kin, undoes__isnull=True).order_by("pk").prefetch_related("undos")
    landed = {checkpoint: row for row in rows for checkpoint in row.landings}
    for place in path:
        row = landed.get(place.id)
        if row is not None and (row.status == Effect.Status.UNDONE or row.going):
            return row, place
    return None


def take_up(run: Run, path: RunPath, *, by: Actor) -> None:
    """Adopt effects that were kept or ordered again, if the run goes back to a checkpoint after them."""
    for row in Effect.objects.filter(run=run, undoes__isnull=True).order_by("pk").select_related("run"):
        changes = row.again or row.status == Effect.Status.KEPT
        if changes and effects.taken_up(row, on_path=path.holds(row.landings)):
            row.adopted(by=by)


def stood_on(row: Effect) -> bool:
    """Tell whether another run depends on this effect."""
    taken = Effect.objects.filter(taken_from=row)
    forks = Run.objects.of_lineage(row.run.lineage).exclude(pk=row.run_id)
    starts = forks.filter(forked_from__isnull=False).values_list("forked_from", flat=True)
    paths = (RunPath.to(start).ids for start in starts if start)  # each read only where nothing before it tells
    return effects.depended_on(row.landings, taken=taken, forks=paths)
