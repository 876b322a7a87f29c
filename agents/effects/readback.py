"""Asks the provider whether an effect happened whose answer never arrived.

Also here: late reports of workers that were fenced during an effect: they make no checkpoint, but are evidence.

A report settles a row whose end is unknown and withdraws the question about it. Where the row was settled otherwise
before, it stays so, and the report is recorded for people to look at.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from enum import Enum

import structlog
from django.db import transaction
from django.db.models import DateTimeField, ExpressionWrapper, F
from django.db.models.functions import Now

from agents.definition import outputs
from agents.errors import OutputRefused
from agents.models import Effect
from agents.session import translate_history
from agents.session.run_session import RunSession
from agents.steps import execute, recovery_gate
from agents.steps.invoke import call_about
from approvals.engine_rules import effects
from checkpoints import actors
from checkpoints.errors import Fenced, ValueRefused
from checkpoints.events import event_log
from checkpoints.runs.plans import StepSpec

from . import hold_left_behind

log = structlog.get_logger()


class ReadBack(Enum):
    """The provider's answer about an effect."""

    HAPPENED = "happened"
    NOT_HAPPENED = "not happened"
    NOT_SAID = "not said"  # it could not be asked, or its no cannot be trusted yet


def read_back(session: RunSession, spec: StepSpec, row: Effect) -> ReadBack:
    """Ask by the effect's key; record an effect that happened as done, with its result. Raises Fenced.

    A no is believed at once if the effect is idempotent; else only after the effect's own timeout, since the provider
    does not know a request yet that is still under way.
    """
    if not spec.readable:
        return ReadBack.NOT_SAID
    try:
        state = translate_history.started_from(row, session.run.plan)
        said = call_about(session, spec.readable, spec.name, state, key=row.key)
        if said is None:
            return ReadBack.NOT_HAPPENED if spec.idempotent or _over(row, spec) else ReadBack.NOT_SAID
        output = outputs.checked(session.agent, session.plan, spec, said)
    except Fenced:
        raise
    except (*execute.RAISED, ValueRefused, OutputRefused) as error:
        log.warning("effect.not_read_back", step=spec.name, key=row.key, error=session.clean(execute.said(error)))
        return ReadBack.NOT_SAID
    with transaction.atomic():
        row.done(translate_history.packed(session.snapshot, row, output), by=session.by)
        session.hold_token()
    log.info("effect.read_back", step=spec.name, key=row.key)
    return ReadBack.HAPPENED


def _over(row: Effect, spec: StepSpec) -> bool:
    """Tell whether the effect's timeout has passed since its intent, by the database's clock."""
    ended = ExpressionWrapper(F("intended_at") + timedelta(seconds=spec.timeout or 0.0), DateTimeField())
    return Effect.objects.filter(pk=row.pk).alias(ended=ended).filter(ended__lt=Now()).exists()


Status = Effect.Status
# By the status reported late, the statuses of a row that do not contradict it.
AGREE = {
    Status.DONE: (*effects.LANDED, Status.UNDONE, *effects.IN_DOUBT),
    Status.FAILED: (Status.FAILED, Status.ABANDONED, *effects.IN_DOUBT),
    Status.UNDONE: (Status.UNDONE,),
}


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
