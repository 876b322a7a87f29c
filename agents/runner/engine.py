"""The runner: takes one run as far as it goes.

It claims the run (guarded; the claim token fences the worker that had it before), loads its head verified, applies the
outcome of a gate there, and executes step after step; each step is one statement that writes checkpoint, status and
event under the token. It stops when the run waits or ends, or when its time slice is over and others get their turn.
"""

from __future__ import annotations

import os
import socket
from datetime import timedelta

import structlog
from django.db import InterfaceError, OperationalError, connection, transaction

from agents.children import turns as turns_of_children
from agents.definition import registry
from agents.effects import perform, undo_left_behind
from agents.gates import opening
from agents.session import reuse
from agents.session.heartbeat import HEART, ClaimBeat
from agents.session.run_session import RunSession
from agents.steps import execute, retry
from agents.steps.local_performer import LOCAL
from agents.steps.open_resources import HERE
from approvals.errors import AskedTooOften
from approvals.models import Gate
from checkpoints import crash_points, store
from checkpoints.actors import SYSTEM
from checkpoints.errors import Fenced, NotVerified
from checkpoints.events import event_log
from checkpoints.models import Run
from checkpoints.store import claims
from checkpoints.store.claims import Claim, ClaimedRun
from checkpoints.values import artifacts

from . import apply_outcome, claiming, version_upgrade

HALTED = 5.0  # seconds that a run which was asked to halt is left alone
HOPELESS = 10  # attempts at the runner's own work, after which the run fails
log = structlog.get_logger()


def advance(run_id: int) -> bool:
    """Take the run as far as it goes, or the one whose turn it is; False where this worker could claim none.

    Safe to call at any time and any number of times: the work to do is read under a claim.
    """
    claim = _claimed(run_id)
    if claim is None:
        return False
    bound = structlog.contextvars.bound_contextvars(run=claim.run_id, token=claim.token)
    with bound, artifacts.kept_for(claim.run.team_id), HEART.watch(claim) as beat:
        try:
            crash_points.point("after_claim")
            _work(claim, beat)
            if claim.run.parent_id:
                turns_of_children.stopped(claim.run.parent_id)
            claiming.let_next(claim.run)
        except Fenced as error:
            _fenced(claim, error)
        except NotVerified as error:
            freeze(claim, error)
        except (OperationalError, InterfaceError) as error:
            log.warning("database.lost", error=str(error))  # the lease runs out, and the sweeper rings
        except Exception as error:
            log.exception("runner.failed")
            _let_go(claim, error)
    return True


def _fenced(claim: Claim, error: Fenced) -> None:
    """Record that this worker was fenced because another one holds the run by now.

    If the claim still holds, somebody else settled an effect instead: queue the run again and count the attempt, or
    this could repeat for ever.
    """
    if claims.renew(claim):
        log.info("effect.settled_elsewhere", error=str(error))
        _let_go(claim, error)
        return
    log.info("run.fenced")
    run = Run.objects.filter(pk=claim.run_id).first()
    if run is not None:
        data = {"worker": worker(), "token": claim.token}
        event_log.record("worker.fenced", subject=f"run:{run.pk}", run=run, by=SYSTEM, data=data)


def _claimed(run_id: int) -> ClaimedRun | None:
    """Claim the run. A connection that broke while this process was idle is replaced, once.

    If the claim was committed but the connection was lost before the answer, this worker does not use it: its lease
    runs out.
    """
    for last in (False, True):
        try:
            return claiming.claim(run_id, worker=worker()) or version_upgrade.claim(run_id, worker=worker())
        except (OperationalError, InterfaceError):
            connection.close()
            if last:
                raise
    raise AssertionError


def worker() -> str:
    """Return the name under which this worker holds claims: host and process id."""
    return f"{socket.gethostname()}:{os.getpid()}"


def _work(claim: ClaimedRun, beat: ClaimBeat) -> None:
    run = claim.run
    known = registry.plans().get(run.plan_id) or version_upgrade.bring_up(claim, run, beat)
    if known is None:
        return
    if known.row is not None:
        run.plan = known.row
    head, trail = store.load_head(run)
    session = RunSession(claim, run, known, head, beat, run.attempts, LOCAL, trail=trail)
    try:
        go_on(session)
        HERE.let_go(run)
    except AskedTooOften as full:  # the step is run again when it may ask
        claims.release(claim, status="queued", wake_at=full.until, reason=full.why, by=session.by, attempts=0)


def go_on(session: RunSession) -> None:
    """Take a claimed run on from its head: apply a decision first, then run steps. Raises AskedTooOften."""
    run = session.run
    while True:
        gate = opening.at_head(session)
        if run.settling and _settles_first(run, gate) and not undo_left_behind.finish(session):
            return
        asks = gate is not None and gate.status == Gate.Status.OPEN and not run.settling
        beside = apply_outcome.beside(session) if asks else []
        gate = apply_outcome.sends_away(beside) or gate
        if gate is None or gate.status != Gate.Status.OPEN:
            going = gate is None or apply_outcome.settle(session, gate)
            session.beat.halt |= gate is not None and _past_deadline(session)
            turns(session, going)
            return
        if opening.wait_for(session, [gate, *(each for each in beside if each.status == Gate.Status.OPEN)]):
            return


def turns(session: RunSession, going: bool) -> None:
    """Execute steps one after the other as long as the run is `going`."""
    while going:
        session.check()
        if session.beat.halt:
            session.flush()
            _halt(session.claim)
            return
        if session.snapshot.plan_id != session.run.plan_id:
            session.flush()
            version_upgrade.hand_over(session)
            return
        going = _past_open_gates(session)


def _past_open_gates(session: RunSession) -> bool:
    """Execute the next step, or first save the outcome of a gate beside it, or wait for one; True if it goes on."""
    beside = [] if session.run.settling else apply_outcome.beside(session)
    closed = apply_outcome.next_closed(session, beside)
    if closed is not None:
        return apply_outcome.settle(session, closed)
    held_by = apply_outcome.waited_for(session, beside)
    return not apply_outcome.wait(session, beside, held_by) if held_by else turn(session)


def _settles_first(run: Run, gate: Gate | None) -> bool:
    """Tell whether effects are settled before the gate at the head is handled.

    A decision and a recovery gate come first, since a new question would push them aside; but a run that is about to
    end needs no decision.
    """
    if gate is None or gate.kind != Gate.Kind.REVIEW:
        return gate is None
    return gate.status == Gate.Status.OPEN or bool(run.ending)


def _past_deadline(session: RunSession) -> bool:
    """Tell whether only a question kept the sweeper from ending the run: it gets the run before the next step."""
    deadline = session.run.deadline
    return deadline is not None and deadline <= session.claim.clock()


def _halt(claim: Claim) -> None:
    """Release the run between steps, which loses no work: a person wants it to halt, to move it."""
    log.info("run.halted")
    wait = claim.clock() + timedelta(seconds=HALTED)
    claims.release(claim, status="queued", wake_at=wait, reason="halted, to be moved", by=SYSTEM, attempts=0)


def turn(session: RunSession) -> bool:
    """Execute the next step; True if the session goes on."""
    if session.run.settling:
        return undo_left_behind.finish(session)
    spec = session.plan.step(session.snapshot.next_step)
    with structlog.contextvars.bound_contextvars(step=spec.name, attempt=session.attempt):
        if spec.kind == "effect":
            return perform.perform(session, spec)
        going = reuse.reused(session, spec) if spec.kind == "step" else None
        if going is not None:
            return going
        if session.attempt > spec.retry + 1:
            return execute.died(session, spec)
        if retry.looping(session, spec):
            return False
        return opening.ask(session, spec) if spec.kind == "gate" else execute.execute(session, spec)


def freeze(claim: Claim, fault: NotVerified) -> None:
    """End, for good, a run whose data does not verify. The reason names the last good checkpoint."""
    reason = f"Integrity fault at {fault}"
    log.error("run.frozen", reason=reason)
    good = last_good(claim.run_id)
    verdict = f"the last checkpoint that verifies is {good}" if good else "no checkpoint of it verifies"
    try:
        apply_outcome.fail(claim, f"{reason[:200]}; {verdict}", freeze=True)
    except Fenced:
        log.info("run.fenced")


def last_good(run_id: int) -> int | None:
    """Return the number of the run's newest checkpoint, on any branch, that loads and verifies; None if none does."""
    run = Run.objects.get(pk=run_id)
    for seq, id in run.checkpoints.order_by("-seq").values_list("seq", "id").iterator(chunk_size=64):
        try:
            store.load_checkpoint(id)
        except NotVerified:
            continue
        return int(seq)
    return None


def _let_go(claim: Claim, error: Exception) -> None:
    """Queue the run again after the runner itself failed; after HOPELESS attempts end it as failed."""
    wait = retry.backoff(claim.attempts)
    try:
        with transaction.atomic():
            if claim.attempts >= HOPELESS:
                apply_outcome.fail(claim, f"The runner failed: {execute.said(error)}")
            else:
                execute.queue_again(claim, wait, execute.said(error), by=SYSTEM)
    except Fenced:
        log.info("run.fenced")
