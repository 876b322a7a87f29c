"""What moving a run's head does to the effects that it leaves behind: they are held until they are settled."""

from __future__ import annotations

from checkpoints.actors import Actor
from checkpoints.models import Hold, Run
from checkpoints.plans import StepSpec

from . import unsettled
from .history import EXECUTED, Path, Place
from .models import Effect


def hold(run: Run, path: Path, *, by: Actor) -> list[Effect]:
    """Hold the state that each unsettled effect started from, which its undo reads; the effects, oldest first."""
    rows = unsettled.of_run(run.pk, path)
    for row in rows:
        reason = f"{row.step} is not settled yet"
        Hold.objects.make(
            run=run, checkpoint=row.base, kind=Hold.Kind.EFFECT, subject=row.subject, reason=reason, by=by
        )
    return rows


def sent_to(run_id: int, spec: StepSpec, digest: bytes, path: Path) -> Effect | None:
    """The effect that is done again where the run is sent back to `spec`, with this input at the end of `path`."""
    return done_at(run_id, spec.name, digest, path.occurrences(spec.name, digest)) if spec.kind == "effect" else None


def gone(run: Run, path: Path) -> tuple[Effect, Place] | None:
    """The first effect of `path` that was taken back since, or is being, and where it landed; None where all stand."""
    kin = Run.objects.of_lineage(run.lineage or run.pk)
    rows = Effect.objects.filter(run__in=kin, undoes__isnull=True).order_by("pk").prefetch_related("undos")
    newest = {(row.run_id, row.step, bytes(row.input_digest), row.occurrence): row for row in rows}
    for place in path:
        row = newest.get((place.run_id, place.step, place.input_digest or b"", place.occurrence))
        if row is not None and place.kind in EXECUTED and _taken_back(row):
            return row, place
    return None


def _taken_back(row: Effect) -> bool:
    return row.status == Effect.Status.UNDONE or (row.going and row.status != Effect.Status.KEPT)


def take_up(run: Run, path: Path, *, by: Actor) -> None:
    """Effects that had been left as they are, or were to be done again, stand where the run goes back to after them.

    The newest of each alone: one that another took the place of is not on the path.
    """
    rows = Effect.objects.filter(run=run, undoes__isnull=True).order_by("pk").select_related("run")
    newest = {(row.step, bytes(row.input_digest), row.occurrence): row for row in rows}
    for execution, row in newest.items():
        off = row.status == Effect.Status.KEPT and not row.left_open
        if (off or (row.again and row.status == Effect.Status.DONE)) and path.holds(*execution):
            row.adopted(by=by)


def done_at(run_id: int, step: str, input_digest: bytes, occurrence: int) -> Effect | None:
    """The effect that an execution of `step` would adopt."""
    rows = Effect.objects.filter(run_id=run_id, undoes__isnull=True, step=step, input_digest=input_digest)
    row = rows.filter(occurrence=occurrence).order_by("-generation").first()
    return row if row is not None and row.adoptable else None
