"""Late reports of workers that were fenced during an effect: they make no checkpoint, but are evidence.

A report settles a row whose end is unknown and withdraws the question about it. Where the row was settled otherwise
before, it stays so, and the report is recorded for people to look at.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog
from django.db import transaction

from agents.models import Effect
from agents.steps import recovery_gate
from approvals.engine_rules import effects
from checkpoints import actors
from checkpoints.errors import Fenced
from checkpoints.events import event_log

from . import hold_left_behind

Status = Effect.Status
# By the status reported late, the statuses of a row that do not contradict it.
AGREE = {
    Status.DONE: (*effects.LANDED, Status.UNDONE, *effects.IN_DOUBT),
    Status.FAILED: (Status.FAILED, Status.ABANDONED, *effects.IN_DOUBT),
    Status.UNDONE: (Status.UNDONE,),
}
log = structlog.get_logger()


def done(row: Effect, result: object) -> None:
    """Record that the effect was done, even if its key was sent again since with an unknown end: it happens once."""
    mine = row.token

    def settle() -> None:
        row.refresh_from_db(from_queryset=Effect.objects.select_for_update())
        if row.status == Status.INTENDED and row.token != mine:
            raise Fenced  # a newer worker is at it, and will tell
        row.done(result, by=actors.SYSTEM)

    _reported(row, settle, Status.DONE, "The worker reported that it happened.")


def failed(row: Effect, error: str) -> None:
    """Record that the effect provably did not happen."""
    told = "The worker reported that it did not happen."
    _reported(row, lambda: row.failed(error, by=actors.SYSTEM), Status.FAILED, told)


def undone(row: Effect, undo: Effect) -> None:
    """Record that the effect was undone."""
    mine = undo.token

    def settle() -> None:
        hold_left_behind.lock(row.run)
        undo.refresh_from_db()
        row.refresh_from_db()
        if row.status != Status.DONE or (undo.status == Status.INTENDED and undo.token != mine):
            raise Fenced
        undo.done(None, by=actors.SYSTEM)
        row.undone(by=actors.SYSTEM)

    _reported(row, settle, Status.UNDONE, "The worker reported that it was undone.")


def _reported(row: Effect, settle: Callable[[], None], said: Status, reason: str) -> None:
    try:
        with transaction.atomic():
            settle()
            recovery_gate.answered_elsewhere(row, reason)
    except Fenced:
        row.refresh_from_db()
        log.info("effect.reported_late", run=row.run_id, step=row.step, key=row.key, said=said, status=row.status)
        if row.status not in AGREE[said] or row.left_open:
            contradicted(row, said)


def contradicted(row: Effect, said: str) -> None:
    """Record, for people, a report that contradicts how the row was settled; the row stays as it is."""
    data = {"effect": row.pk, "step": row.step, "key": row.key, "said": str(said), "status": row.status}
    event_log.record("effect.contradicted", subject=row.subject, run=row.run, by=actors.SYSTEM, data=data)
