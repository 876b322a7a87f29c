"""Validators' refusals: kept as failures of their step, and counted until an output is accepted.

Refusals of one output by several validators count once. A person's decision starts the count anew: it changes the
conditions of the earlier refusals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from django.db.models import Max, Q, QuerySet

from agents.definition.feedback import Words
from agents.models import Failure
from agents.session.run_session import RunSession
from approvals.models import Gate
from checkpoints.events import event_log
from checkpoints.models import Checkpoint
from checkpoints.runs.plans import StepSpec
from checkpoints.values.characters import one_line
from checkpoints.values.checkpoint_kinds import OUTPUT_LANDED

LONGEST = 4000  # characters of one validator's words that are kept
SENT = ("input", "fork", "edit", "rewind", "upcast")  # kinds of the checkpoints from which a person sent a run on


def keep(session: RunSession, spec: StepSpec, refused: Mapping[str, str], ring: int) -> list[Failure]:
    """Store each validator's refusal with its event, in the caller's transaction."""
    rows = []
    for validator, words in refused.items():
        row = Failure.objects.create(
            run=session.run,
            base=session.snapshot.id,
            step=spec.name,
            attempt=session.attempt,
            error=one_line(session.clean(words), 300),
            traceback=session.clean(words).encode(),
            validator=validator,
            ring=ring,
            seq=session.snapshot.seq,
        )
        rows.append(row)
        data = {"step": spec.name, "validator": validator, "ring": ring, "attempt": session.attempt}
        event_log.record("step.refused", subject=f"run:{session.run.pk}", run=session.run, by=session.by, data=data)
    return rows


def tried(session: RunSession, step: str) -> int:
    """Count the refused outputs of the step since one was accepted, or since a person's last decision."""
    answered = Gate.objects.filter(run_id=session.run.pk, outcome__by__startswith="user:").values("checkpoint")
    after = Checkpoint.objects.filter(run_id=session.run.pk, parent__in=answered)
    since = max(after.aggregate(seq=Max("seq"))["seq"] or 0, _accepted(session.run.pk, step))
    return _of(session.run.pk, step).filter(seq__gte=since).values("seq").distinct().count()


def unaccepted(run_id: int, step: str) -> list[Failure]:
    """List the step's refusals since an output was accepted, or a person sent the run elsewhere; oldest first."""
    return list(_of(run_id, step).filter(seq__gte=_accepted(run_id, step)).order_by("pk"))


def at(run_id: int, step: str, checkpoint: UUID) -> list[Failure]:
    """List the refusals of the step's outputs when started from this checkpoint, oldest first."""
    return list(_of(run_id, step).filter(base=checkpoint).order_by("pk"))


def bases(run_id: int, step: str, checkpoints: Iterable[UUID]) -> set[UUID]:
    """Return the checkpoints among these from which the step gave an output that was refused."""
    return set(_of(run_id, step).filter(base__in=list(checkpoints)).values_list("base", flat=True))


def words_for(session: RunSession, spec: StepSpec) -> list[str]:
    """List the objections to outputs of this step and of the steps that repairs on the path are for; oldest first."""
    steps = {spec.name, *(place.step for place in session.path if place.kind == "repair")}
    rows = [row for step in steps for row in unaccepted(session.run.pk, step)]
    return [words_of(row)["text"] for row in sorted(rows, key=lambda row: row.pk)]


def words_of(row: Failure) -> Words:
    """Return the refusal as feedback, under the validator's name."""
    return Words(text=bytes(row.traceback).decode(), by=row.validator, at=row.at)


def _of(run_id: int, step: str) -> QuerySet[Failure]:
    return Failure.objects.filter(run_id=run_id, step=step).exclude(validator="")


def _accepted(run_id: int, step: str) -> int:
    """Return the newest checkpoint's number at which an output was saved or a person sent the run on; 0 for none."""
    landed = Q(step=step, kind__in=OUTPUT_LANDED) | Q(kind__in=SENT)
    found = Checkpoint.objects.filter(landed, run_id=run_id).aggregate(seq=Max("seq"))["seq"]
    return int(found or 0)
