"""Settles the effects that a run left behind off its path: undoes them one after the other, newest first.

An undo is an effect itself, with an intent row, a key and an end: after a crash the next worker goes on with the open
row. An effect that cannot be undone is recorded as kept, never as undone. If its end is unknown, the provider is asked
first. Where that or an undo fails, a person is asked.
"""

from __future__ import annotations

from typing import Any

import structlog
from django.db import transaction

from agents.definition import outputs
from agents.errors import EffectFailed
from agents.models import Effect
from agents.session import translate_history, unsettled_effects
from agents.session.run_session import RunSession
from agents.steps import execute, recovery_gate, retry
from agents.steps.invoke import declared
from approvals.cards.recovery_answers import RecoveryAnswer
from approvals.engine_rules import effects
from checkpoints import crash_points
from checkpoints.actors import Actor
from checkpoints.errors import Fenced
from checkpoints.models import Run
from checkpoints.runs.plans import StepSpec
from checkpoints.store import claims
from checkpoints.values import digests

from . import classify_failure, hold_left_behind, late_reports, readback
from .readback import ReadBack

Status = Effect.Status
log = structlog.get_logger()


def finish(slice: RunSession) -> bool:
    """Settle all effects left behind, then end the run in its noted status, if any; says whether the slice goes on."""
    if not settle(slice, unsettled_effects.due(slice.unsettled(), slice.plan)):
        return False
    ending, reason = slice.run.ending, slice.run.ending_reason
    by = Actor(slice.run.ending_by, slice.run.ending_by_name)
    if not ending and not slice.snapshot.next_step:
        ending = str(Run.Status.COMPLETED)  # its last step landed while the run settled
    with transaction.atomic():
        slice.hold_token()
        slice.run.settled()
        if ending:
            claims.release(slice.claim, status=ending, reason=reason, by=by)
    return not ending


def settle(slice: RunSession, rows: list[Effect]) -> bool:
    """Settle these effects in order; False where the slice is over, because a person is asked or a pause is due."""
    for row in rows:
        crash_points.point("before_settle", row.step)
        slice.check()
        if not _settled(slice, row):
            return False
        slice.progressed()
    return True


def _settled(slice: RunSession, row: Effect) -> bool:
    spec = next((step for step in slice.plan.steps if step.name == row.step), StepSpec(row.step, kind="effect"))
    if row.status in effects.IN_DOUBT and not _known(slice, spec, row):
        return False
    if row.status != Status.DONE:
        return True
    if not effects.undoable(row, undo=spec.undo, shared=lambda: hold_left_behind.stood_on(row)):
        with transaction.atomic():
            row.kept(by=slice.by)
            slice.hold_token()
        return True
    return _undo(slice, spec, row)


def _known(slice: RunSession, spec: StepSpec, row: Effect) -> bool:
    """Find out whether an unknown effect happened; False where a person is asked, or the provider again later."""
    if row.status == Status.INTENDED:
        row.unknown("The run went elsewhere before the answer came.", by=slice.by)
    found = readback.read_back(slice, spec, row)
    if found is ReadBack.NOT_HAPPENED:
        with transaction.atomic():
            row.failed("The provider says that it did not happen.", by=slice.by)
            slice.hold_token()
    elif found is ReadBack.NOT_SAID:
        if spec.readable and slice.attempt <= spec.retry:
            with transaction.atomic():
                execute.queue_again(slice.claim, retry.backoff(slice.attempt), "asks the provider again", by=slice.by)
        else:
            recovery_gate.abandoned(slice, spec, row)
        return False
    return True


def _undo(slice: RunSession, spec: StepSpec, row: Effect) -> bool:
    """Undo the effect, or resume an undo that an earlier worker began. Raises NotVerified for a forged row."""
    row.verified()
    said = declared(slice, spec.undo)
    undo = row.undos.select_related("run").order_by("-generation").first()
    if undo is not None and undo.status in effects.IN_DOUBT:
        if undo.status == Status.INTENDED:
            undo.unknown("The worker was gone before the answer came.", by=slice.by)
        if not said.idempotent or undo.attempts > said.retry:
            recovery_gate.not_undone(slice, spec, row, undo.error)
            return False
    if undo is not None and undo.status == Status.FAILED and undo.base != slice.snapshot.id:
        undo = None  # a person was asked since, and ordered it again: under a key of its own
    if not slice.performer.begins(slice, spec, undoes=row):
        return False
    intended = _intended(slice, spec, row, undo)
    return _settled(slice, row) if intended is None else _send(slice, spec, row, intended)


def _intended(slice: RunSession, spec: StepSpec, row: Effect, undo: Effect | None) -> Effect | None:
    """Write the undo's intent and return its row; None if a fork depends on the effect by now. Raises Fenced."""
    crash_points.point("before_undo", spec.name)
    with transaction.atomic():
        hold_left_behind.lock(slice.run)
        if hold_left_behind.stood_on(row):
            return None
        if undo is not None and undo.status in (Status.UNKNOWN, Status.FAILED):
            undo.retried(token=slice.claim.token, by=slice.by)
            slice.hold_token()
        else:
            slice.hold_token()
            undo = _row(slice, row)
    crash_points.point("after_undo_intent", spec.name)
    return undo


def _row(slice: RunSession, row: Effect) -> Effect:
    generation = row.undos.count()
    undo = Effect.objects.create(
        run=slice.run,
        step=row.step,
        key=digests.of_value(["undo", row.key, generation]).hex(),
        undoes=row,
        base=slice.snapshot.id,
        input_digest=row.input_digest,
        occurrence=row.occurrence,
        generation=generation,
        token=slice.claim.token,
    )
    undo.intended(by=slice.by)
    return undo


def _send(slice: RunSession, spec: StepSpec, row: Effect, undo: Effect) -> bool:
    """Send the undo and record its end; False where the slice is over."""
    doubt = "An earlier attempt got no answer." if undo.attempts > 1 else ""
    try:
        if not slice.performer.undo(slice, spec, row, undo):
            return False
    except Fenced:
        raise
    except execute.RAISED as error:
        return not_undone(slice, spec, row, undo, classify_failure.of(error, doubt), error)
    crash_points.point("after_undo", spec.name)
    taken_back(slice, row, undo)
    return True


def taken_back(slice: RunSession, row: Effect, undo: Effect) -> None:
    """Record that the effect was undone. Raises Fenced."""
    try:
        with transaction.atomic():
            hold_left_behind.lock(slice.run)
            undo.done(None, by=slice.by)
            row.undone(by=slice.by)
            recovery_gate.answered_elsewhere(row, "The worker reported that it was undone.")
    except Fenced:
        late_reports.undone(row, undo)
        raise


def answered(slice: RunSession, spec: StepSpec, key: str, choice: str, value: Any, *, by: Actor) -> None:
    """Record a person's answer about the effect of that key, which the run left behind, in the caller's transaction.

    An effect that a late report has settled meanwhile is left as it is.

    Raises ValueRefused and OutputRefused for a result that does not fit.
    """
    hold_left_behind.lock(slice.run)
    row = Effect.objects.select_related("run").get(run=slice.run, key=key)
    undo = row.undos.select_related("run").order_by("-generation").first()
    if undo is not None and choice in (RecoveryAnswer.UNDO_AGAIN, RecoveryAnswer.UNDONE, RecoveryAnswer.KEEP):
        _answered_undo(undo, row, choice, by=by)
    elif row.status == Status.UNKNOWN and choice == RecoveryAnswer.WAS_DONE:
        row.done(translate_history.packed(slice.snapshot, row, outputs.told(slice.agent, spec, value)), by=by)
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
    slice: RunSession, spec: StepSpec, row: Effect, undo: Effect, end: classify_failure.End, error: BaseException
) -> bool:
    """Record that the undo failed or is unknown; try again later where that is safe, else ask. Ends the slice."""
    said = declared(slice, spec.undo)
    failed, words = isinstance(end, EffectFailed), slice.clean(classify_failure.said(end))
    safe = end.retry if isinstance(end, EffectFailed) else said.idempotent
    log.warning("undo.failed" if failed else "undo.unknown", step=spec.name, key=undo.key, error=words)
    with transaction.atomic():
        (undo.failed if failed else undo.unknown)(words, by=slice.by)
        execute.keep(slice, spec, error)
        if safe and undo.attempts <= said.retry:
            execute.queue_again(slice.claim, retry.backoff(undo.attempts), words, by=slice.by)
        else:
            recovery_gate.not_undone(slice, spec, row, words)
    return False
