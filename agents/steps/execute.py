"""Executes a step, checks and validates its output, and handles its failure."""

from __future__ import annotations

import traceback
from datetime import timedelta

import structlog
from django.db import transaction

from agents.definition import outputs
from agents.errors import AgentError, Retry, StepFailed, StepTimeout
from agents.models import Failure
from agents.session.run_session import RunSession
from agents.text import one_line, utf8
from approvals.errors import CardRefused
from checkpoints import crash_points
from checkpoints.actors import Actor
from checkpoints.errors import Fenced, ValueRefused
from checkpoints.events import event_log
from checkpoints.runs.plans import StepSpec
from checkpoints.store import claims
from checkpoints.store.claims import Claim

from . import recovery_gate, repair, retry

TRACEBACK_LIMIT = 64 * 1024  # bytes
USELESS_TO_REPEAT = (StepFailed, ValueRefused, AgentError, CardRefused)
# What a step's own code may raise. SystemExit is here because a step's sys.exit() must not end the worker.
RAISED = (Exception, StepTimeout, SystemExit)
log = structlog.get_logger()


def execute(slice: RunSession, spec: StepSpec) -> bool:
    """Run a plain step and save what it wrote, unless its validators refuse it; says whether the slice goes on."""
    crash_points.point("before_step", spec.name)
    try:
        returned = slice.performer.step(slice, spec)
        if returned is None:
            return False
        crash_points.point("after_step", spec.name, returned.value)
        output = outputs.checked(slice.agent, slice.plan, spec, returned.value)
        refused = repair.judged(slice, spec, output)
        if not refused:
            return slice.executed(spec, output.writes, output.goto, took=returned.took, notes=returned.notes)
    except Fenced:
        raise
    except RAISED as error:
        return failed(slice, spec, error)
    return repair.repair(slice, spec, output, refused)


def failed(slice: RunSession, spec: StepSpec, error: BaseException) -> bool:
    """Record the failure; try again later while attempts are left, else go on with the step `catch`, or ask a person.

    Says whether the slice goes on.
    """
    log.warning("step.failed", step=spec.name, attempt=slice.attempt, error=one_line(slice.clean(repr(error)), 300))
    with transaction.atomic():
        keep(slice, spec, error)
        if slice.attempt <= spec.retry and not isinstance(error, USELESS_TO_REPEAT):
            again_later(slice, spec, error)
        elif spec.catch:
            return retry.catch(slice, spec, slice.clean(said(error)))
        else:
            recovery_gate.quarantine(slice, spec, slice.clean(said(error)))
    return False


def died(slice: RunSession, spec: StepSpec) -> bool:
    """Fail a step that was started too often without ending, since it kills its workers. Returns as `failed`."""
    error = StepFailed(f"{slice.attempt - 1} workers died in this step, or were stopped, before it came to an end.")
    return failed(slice, spec, error)


def again_later(slice: RunSession, spec: StepSpec, error: BaseException) -> None:
    """Queue the run again after a backoff; the sweeper rings when it is due. Raises Fenced."""
    asked = error.after if isinstance(error, Retry) else None
    wait = retry.backoff(slice.attempt, spec.backoff) if asked is None else asked
    queue_again(slice.claim, wait, slice.clean(said(error)), by=slice.by)


def queue_again(claim: Claim, wait: float, reason: str, *, by: Actor) -> None:
    """Release the run, queued until `wait` seconds have passed. Raises Fenced."""
    wake_at = claim.clock() + timedelta(seconds=wait)
    claims.release(claim, status="queued", wake_at=wake_at, reason=reason, by=by)


def keep(slice: RunSession, spec: StepSpec, error: BaseException) -> None:
    """Store the failure, in the caller's transaction, with its traceback unless the step raised StepFailed itself."""
    worded = isinstance(error, StepFailed) and error.__cause__ is None
    trace = "" if worded else slice.clean("".join(traceback.format_exception(error)))
    Failure.objects.create(
        run=slice.run,
        base=slice.snapshot.id,
        step=spec.name,
        attempt=slice.attempt,
        error=slice.clean(said(error)),
        traceback=utf8(trace, TRACEBACK_LIMIT),
    )
    data = {"step": spec.name, "attempt": slice.attempt}
    event_log.record("step.failed", subject=f"run:{slice.run.pk}", run=slice.run, by=slice.by, data=data)


def said(error: BaseException) -> str:
    """Return the exception in one line, with its type; without it for StepFailed and Retry."""
    kind = "" if isinstance(error, (StepFailed, Retry)) else f"{type(error).__name__}: "
    return one_line(f"{kind}{error}", 300)
