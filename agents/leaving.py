"""What moving a run's head does to the effects that it leaves behind: they are held until they are settled."""

from __future__ import annotations

from checkpoints.actors import Actor
from checkpoints.models import Hold, Run
from checkpoints.plans import StepSpec

from . import unsettled
from .history import Path
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


def done_at(run_id: int, step: str, input_digest: bytes, occurrence: int) -> Effect | None:
    """The effect that an execution of `step` would adopt."""
    rows = Effect.objects.filter(run_id=run_id, undoes__isnull=True, step=step, input_digest=input_digest)
    row = rows.filter(occurrence=occurrence).order_by("-generation").first()
    adoptable = row is not None and row.status in (Effect.Status.DONE, Effect.Status.KEPT) and not row.again
    return row if adoptable else None
