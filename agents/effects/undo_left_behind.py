"""Settles the effects that a run left behind off its path: undoes them one after the other, newest first.

An undo is an effect itself, with an intent row, a key and an end: after a crash the next worker goes on with the open
row. An effect that cannot be undone is recorded as kept, never as undone. If its end is unknown, the provider is asked
first. Where that or an undo fails, a person is asked.
"""

from __future__ import annotations

from typing import Any

import structlog
from django.db import transaction

from agents.children import orders
from agents.definition import outputs
from agents.errors import EffectFailed
from agents.models import Effect
from agents.session import run_path, translate_history
from agents.session.run_session import RunSession
from agents.steps import execute, recovery_gate, retry
from agents.steps.invoke import declared
from approvals.cards.answer import RecoveryAnswer
from approvals.engine_rules import effects
from checkpoints import crash_points
from checkpoints.actors import Actor
from checkpoints.errors import Fenced
from checkpoints.models import Run
from checkpoints.runs.plans import StepSpec
from checkpoints.store import claims
from checkpoints.values import digests

from . import classify_failure, hold_left_behind, readback
from .readback import ReadBack

Status = Effect.Status
log = structlog.get_logger()


def finish(session: RunSession) -> bool:
    """Settle all effects left behind, then end the run in its noted status, if any; True if the session goes on."""
    if not settle(session, run_path.due(session.unsettled(), session.plan)) or not orders.settled(session):
        return False
    ending, reason = session.run.ending, session.run.ending_reason
    by = Actor(session.run.ending_by, session.run.ending_by_name)
    if not ending and not session.snapshot.next_step and not session.asking:
        ending = str(Run.Status.COMPLETED)  # its last step landed while the run settled
    with transaction.atomic():
        session.hold_token()
        session.run.settled()
        if ending:
            claims.release(session.claim, status=ending, reason=reason, by=by)
    return not ending


def settle(session: RunSession, rows: list[Effect]) -> bool:
    """Settle these effects in order; False where the session is over, because a person is asked or a pause is due."""
    for row in rows:
        crash_points.point("before_settle", row.step)
        session.check()
        if not _settled(session, row):
            return False
        session.progressed()
    return True


def _settled(session: RunSession, row: Effect) -> bool:
    spec = next((step for step in session.plan.steps if step.name == row.step), StepSpec(row.step, kind="effect"))
    if row.status in effects.IN_DOUBT and not _known(session, spec, row):
        return False
    if row.status != Status.DONE:
        return True
    if not effects.undoable(row, undo=spec.undo, shared=lambda: hold_left_behind.stood_on(row)):
        with transaction.atomic():
            row.kept(by=session.by)
            session.hold_token()
        return True
    return _undo(session, spec, row)


def _known(session: RunSession, spec: StepSpec, row: Effect) -> bool:
    """Find out whether an unknown effect happened; False where a person is asked, or the provider again later."""
    if row.status == Status.INTENDED:
        row.unknown("The run went elsewhere before the answer came.", by=session.by)
    found = readback.read_back(session, spec, row)
    if found is ReadBack.NOT_HAPPENED:
        with transaction.atomic():
            row.failed("The provider says that it did not happen.", by=session.by)
            session.hold_token()
    elif found is ReadBack.NOT_SAID:
        if spec.readable and session.attempt <= spec.retry:
            with transaction.atomic():
                execute.queue_again(
                    session.claim, retry.backoff(session.attempt), "asks the provider again", by=session.by
                )
        else:
            recovery_gate.abandoned(session, spec, row)
        return False
    return True


def _undo(session: RunSession, spec: StepSpec, row: Effect) -> bool:
    """Undo the effect, or resume an undo that an earlier worker began. Raises NotVerified for a forged row."""
    row.verified()
    said = declared(session, spec.undo)
    undo = row.undos.select_related("run").order_by("-generation").first()
    if undo is not None and undo.status in effects.IN_DOUBT:
        if undo.status == Status.INTENDED:
            undo.unknown("The worker was gone before the answer came.", by=session.by)
        if not said.idempotent or undo.attempts > said.retry:
            recovery_gate.not_undone(session, spec, row, undo.error)
            return False
    if undo is not None and undo.status == Status.FAILED and undo.base != session.snapshot.id:
        undo = None  # a person was asked since, and ordered it again: under a key of its own
    if not session.performer.begins(session, spec, undoes=row):
        return False
    intended = _intended(session, spec, row, undo)
    return _settled(session, row) if intended is None else _send(session, spec, row, intended)


def _intended(session: RunSession, spec: StepSpec, row: Effect, undo: Effect | None) -> Effect | None:
    """Write the undo's intent and return its row; None if a fork depends on the effect by now. Raises Fenced."""
    crash_points.point("before_undo", spec.name)
    with transaction.atomic():
        hold_left_behind.lock(session.run)
        if hold_left_behind.stood_on(row):
            return None
        if undo is not None and undo.status in (Status.UNKNOWN, Status.FAILED):
            undo.retried(token=session.claim.token, by=session.by)
            session.hold_token()
        else:
            session.hold_token()
            undo = _row(session, row)
    crash_points.point("after_undo_intent", spec.name)
    return undo


def _row(session: RunSession, row: Effect) -> Effect:
    generation = row.undos.count()
    undo = Effect.objects.create(
        run=session.run,
        step=row.step,
        key=digests.of_value(["undo", row.key, generation]).hex(),
        undoes=row,
        base=session.snapshot.id,
        input_digest=row.input_digest,
        occurrence=row.occurrence,
        generation=generation,
        token=session.claim.token,
    )
    undo.intended(by=session.by)
    return undo


def _send(session: RunSession, spec: StepSpec, row: Effect, undo: Effect) -> bool:
    """Send the undo and record its end; False where the session is over."""
    doubt = "An earlier attempt got no answer." if undo.attempts > 1 else ""
    try:
        if not session.performer.undo(session, spec, row, undo):
            return False
    except Fenced:
        raise
    except execute.RAISED as error:
        return not_undone(session, spec, row, undo, classify_failure.of(error, doubt), error)
    crash_points.point("after_undo", spec.name)
    taken_back(session, row, undo)
    return True


def taken_back(session: RunSession, row: Effect, undo: Effect) -> None:
    """Record that the effect was undone. Raises Fenced."""
    try:
        with transaction.atomic():
            hold_left_behind.lock(session.run)
            undo.done(None, by=session.by)
            row.undone(by=session.by)
            recovery_gate.answered_elsewhere(row, "The worker reported that it was undone.")
    except Fenced:
        readback.undone(row, undo)
        raise


def answered(session: RunSession, spec: StepSpec, key: str, choice: str, value: Any, *, by: Actor) -> None:
    """Record a person's answer about the effect of that key, which the run left behind, in the caller's transaction.

    An effect that a late report has settled meanwhile is left as it is.

    Raises ValueRefused and OutputRefused for a result that does not fit.
    """
    hold_left_behind.lock(session.run)
    row = Effect.objects.select_related("run").get(run=session.run, key=key)
    undo = row.undos.select_related("run").order_by("-generation").first()
    if undo is not None and choice in (RecoveryAnswer.UNDO_AGAIN, RecoveryAnswer.UNDONE, RecoveryAnswer.KEEP):
        _answered_undo(undo, row, choice, by=by)
    elif row.status == Status.UNKNOWN and choice == RecoveryAnswer.WAS_DONE:
        row.done(
            translate_history.packed(session.snapshot, row, outputs.check_entered(session.agent, spec, value)), by=by
        )
    elif row.status == Status.UNKNOWN and choice == RecoveryAnswer.WAS_NOT_DONE:
        row.failed(f"{by.name or by.id} says that it did not happen", by=by)
    elif row.status == Status.UNKNOWN and choice == RecoveryAnswer.LEFT_OPEN:
        row.kept(by=by)


def open_of(row: Effect) -> bool:
    """Tell whether the effect is still in doubt, or an undo of it was begun and is not done."""
    undo = row.undos.order_by("-generation").first()
    return row.status in effects.IN_DOUBT or (
        row.status == Status.DONE and undo is not None and undo.status != Status.DONE
    )


def _answered_undo(undo: Effect, row: Effect, choice: str, *, by: Actor) -> None:
    if undo.status == Status.UNKNOWN:
        (undo.done(None, by=by) if choice == RecoveryAnswer.UNDONE else undo.abandoned(by=by))
    if row.status != Status.DONE:
        return
    if choice == RecoveryAnswer.UNDONE:
        row.undone(by=by)
    elif choice == RecoveryAnswer.KEEP:
        row.kept(by=by)


def not_undone(
    session: RunSession, spec: StepSpec, row: Effect, undo: Effect, end: classify_failure.End, error: BaseException
) -> bool:
    """Record that the undo failed or is unknown; try again later where that is safe, else ask. Ends the session."""
    said = declared(session, spec.undo)
    failed, words = isinstance(end, EffectFailed), session.clean(classify_failure.said(end))
    safe = end.retry if isinstance(end, EffectFailed) else said.idempotent
    log.warning("undo.failed" if failed else "undo.unknown", step=spec.name, key=undo.key, error=words)
    with transaction.atomic():
        (undo.failed if failed else undo.unknown)(words, by=session.by)
        execute.keep(session, spec, error)
        if safe and undo.attempts <= said.retry:
            execute.queue_again(session.claim, retry.backoff(undo.attempts), words, by=session.by)
        else:
            recovery_gate.not_undone(session, spec, row, words)
    return False
