"""Executes a step, checks and validates its output, and handles its failure."""

from __future__ import annotations

import traceback
from datetime import timedelta

import structlog
from django.db import transaction

from agents.children import gather, orders
from agents.children.spawn import Uncalled
from agents.definition import outputs
from agents.errors import AgentError, InvariantBroken, Retry, StepFailed, StepTimeout, Suspended
from agents.models import Failure
from agents.session.run_session import RunSession
from agents.waits.step_waits import suspend
from approvals.errors import CardRefused
from checkpoints import crash_points
from checkpoints.actors import Actor
from checkpoints.errors import Fenced, NotVerified, ValueRefused
from checkpoints.events import event_log
from checkpoints.runs.plans import StepSpec
from checkpoints.store import claims
from checkpoints.store.claims import Claim
from checkpoints.values.characters import encode_tail, one_line

from . import recovery_gate, repair, retry, started_otherwise

TRACEBACK_LIMIT = 64 * 1024  # bytes
USELESS_TO_REPEAT = (StepFailed, ValueRefused, AgentError, CardRefused)
# What a step's own code may raise. SystemExit is here because a step's sys.exit() must not end the worker.
RAISED = (Exception, StepTimeout, SystemExit)
log = structlog.get_logger()


def execute(session: RunSession, spec: StepSpec) -> bool:
    """Run a plain step and save what it wrote, unless its validators refuse it; True if the session goes on."""
    crash_points.point("before_step", spec.name)
    try:
        returned = session.performer.step(session, spec)
        if returned is None:
            return False
        crash_points.point("after_step", spec.name, returned.value)
        output = outputs.checked(session.agent, session.plan, spec, returned.value)
        refused = repair.judged(session, spec, output)
        if not refused:
            return orders.executed(session, spec, output, returned)
    except (Fenced, NotVerified):
        raise
    except Suspended as suspended:
        if isinstance(suspended.wait, gather.Gathering):
            gather.suspend(session, spec, suspended.wait)
        elif isinstance(suspended.wait, Uncalled):
            _uncalled(session, spec, suspended.wait)
        else:
            suspend(session, spec, suspended.wait)
        return False
    except RAISED as error:
        return failed(session, spec, error)
    return repair.repair(session, spec, output, refused)


def _uncalled(session: RunSession, spec: StepSpec, started: Uncalled) -> None:
    """Ask what to do about what another version started; wait for it where a person had it undone. Raises Fenced."""
    if rows := [row for row in started.rows if not row.undone or row.run.frozen]:
        started_otherwise.ask(session, spec, rows)
    else:
        orders.wait_for(session, [row.pk for row in started.rows])


def failed(session: RunSession, spec: StepSpec, error: BaseException) -> bool:
    """Record the failure; try again later while attempts are left, else go on with the step `catch`, or ask a person.

    True if the session goes on.
    """
    log.warning("step.failed", step=spec.name, attempt=session.attempt, error=one_line(session.clean(repr(error)), 300))
    session.flush()
    with transaction.atomic():
        keep(session, spec, error)
        if session.attempt <= spec.retry and not isinstance(error, USELESS_TO_REPEAT):
            again_later(session, spec, error)
        elif spec.catch:
            return retry.catch(session, spec, session.clean(said(error)))
        else:
            recovery_gate.quarantine(session, spec, session.clean(said(error)))
    return False


def died(session: RunSession, spec: StepSpec) -> bool:
    """Fail a step that was started too often without ending, since it kills its workers. Returns as `failed`."""
    error = StepFailed(f"{session.attempt - 1} workers died in this step, or were stopped, before it came to an end.")
    return failed(session, spec, error)


def again_later(session: RunSession, spec: StepSpec, error: BaseException) -> None:
    """Queue the run again after a backoff; the sweeper rings when it is due. Raises Fenced."""
    asked = error.after if isinstance(error, Retry) else None
    wait = retry.backoff(session.attempt, spec.backoff) if asked is None else asked
    queue_again(session.claim, wait, session.clean(said(error)), by=session.by)


def queue_again(claim: Claim, wait: float, reason: str, *, by: Actor) -> None:
    """Release the run, queued until `wait` seconds have passed. Raises Fenced."""
    wake_at = claim.clock() + timedelta(seconds=wait)
    claims.release(claim, status="queued", wake_at=wake_at, reason=reason, by=by)


def keep(session: RunSession, spec: StepSpec, error: BaseException) -> None:
    """Store the failure, in the caller's transaction, with its traceback unless the step raised StepFailed itself."""
    worded = isinstance(error, StepFailed) and error.__cause__ is None
    trace = "" if worded else session.clean("".join(traceback.format_exception(error)))
    Failure.objects.create(
        run=session.run,
        base=session.snapshot.id,
        step=spec.name,
        attempt=session.attempt,
        error=session.clean(said(error)),
        traceback=encode_tail(trace, TRACEBACK_LIMIT),
    )
    data = {"step": spec.name, "attempt": session.attempt}
    event_log.record("step.failed", subject=f"run:{session.run.pk}", run=session.run, by=session.by, data=data)


def said(error: BaseException) -> str:
    """Return the exception in one line, with its type; without it for StepFailed, Retry and InvariantBroken."""
    kind = "" if isinstance(error, (StepFailed, Retry, InvariantBroken)) else f"{type(error).__name__}: "
    return one_line(f"{kind}{error}", 300)
