"""Applies a gate's outcome to its run: the decision closed the gate, the worker writes the rest under its token.

Of gates that stay open while their run goes on it takes up the outcomes, and it waits where the run depends on one.

An outcome is saved at the head, wherever the run is by then, as a checkpoint of its own that changes nothing about the
step under way. What a rejection sends the run back from is left behind, and open gates among it are withdrawn.
The gates of a run that fails here are withdrawn with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import transaction

from agents.definition.feedback import Words, append_words
from agents.effects import hold_left_behind
from agents.errors import InvariantBroken
from agents.gates import opening, outcome_writes
from agents.session import gates_beside
from agents.session.run_session import RunSession
from agents.steps import execute, recovery_gate
from approvals.audit import evidence
from approvals.engine_rules import permissions
from approvals.english import quote_titles
from approvals.models import Gate, Outcome
from checkpoints import crash_points, store
from checkpoints.actors import SYSTEM
from checkpoints.errors import NoSuchCheckpoint, ValueRefused
from checkpoints.models import Run
from checkpoints.runs.plans import StepSpec
from checkpoints.store import Snapshot, claims
from checkpoints.store.claims import Claim
from checkpoints.values.characters import one_line
from checkpoints.values.patch import touched_members

from .apply_recovery import misfit, recover, who, why_ended


def beside(session: RunSession) -> list[Gate]:
    """Return the gates that the run went on from, by when they closed, the open ones last."""
    asking = session.asking
    if not asking:
        return []
    rows = Gate.objects.select_related("outcome__proposal").filter(run_id=session.run.pk, checkpoint__in=list(asking))
    found = [gate for gate in evidence.with_end(rows) if asking[gate.checkpoint] == gate.step]
    return sorted(found, key=lambda gate: (gate.closed_at is None, gate.closed_at, gate.pk))


def is_beside(session: RunSession, gate: Gate) -> bool:
    """Tell whether the run went on from this gate, and its outcome is not on the path."""
    return session.asking.get(gate.checkpoint) == gate.step


def sends_away(rows: Sequence[Gate]) -> Gate | None:
    """Return the first of these gates whose outcome ends the run, or sends it elsewhere."""
    closed = (gate for gate in rows if gate.status != Gate.Status.OPEN)
    return next((gate for gate in closed if gate.outcome.kind not in permissions.AGREED), None)


def next_closed(session: RunSession, rows: Sequence[Gate]) -> Gate | None:
    """Return the gate whose outcome is saved before the next step; None for none.

    A gate that is opened again for an effect comes before all others that were approved.
    """
    if session.path.head.kind == "reopen":
        return sends_away(rows)
    return next((gate for gate in rows if gate.status != Gate.Status.OPEN), None)


def waited_for(session: RunSession, rows: Sequence[Gate]) -> list[Gate]:
    """Return the open gates that the next step, or the end of the run, waits for."""
    if session.path.head.kind == "reopen":
        return []
    name = session.snapshot.next_step
    return [gate for gate in rows if permissions.holds_up(session.plan, session.plan.step(gate.step), name)]


def wait(session: RunSession, rows: Sequence[Gate], held_by: Sequence[Gate]) -> bool:
    """Release the run until one of its gates is decided. False where one was closed meanwhile."""
    reason = f"waits for the decision at {quote_titles([gate.title for gate in held_by])}"
    return opening.wait_for(session, rows, reason)


def fail(claim: Claim, reason: str, *, freeze: bool = False) -> None:
    """End the run as failed, and withdraw its open gates. Raises Fenced."""
    with gates_beside.left(claim.run_id, by=SYSTEM, reason=gates_beside.ENDED):
        claims.release(claim, status="failed", reason=reason, freeze=freeze, by=SYSTEM)


Kind = Outcome.Kind


def settle(session: RunSession, gate: Gate) -> bool:
    """Save the outcome of the gate at the head as its step's checkpoint; True if the session goes on.

    Raises NotVerified for an outcome that nobody decided.
    """
    crash_points.point("before_outcome", gate.step)
    spec = session.plan.step(gate.step)
    outcome: Outcome = gate.outcome
    evidence.check_ended(gate, outcome, gate.end)
    if session.plan.goes_on_asking:
        with transaction.atomic():
            gates_beside.lock_with_effects(session.run.pk)
            going = _written(session, spec, gate, outcome)
    else:
        going = _written(session, spec, gate, outcome)
    crash_points.point("after_outcome", gate.step)
    return going


def _written(session: RunSession, spec: StepSpec, gate: Gate, outcome: Outcome) -> bool:
    try:
        if gate.kind == Gate.Kind.RECOVERY:
            return recover(session, spec, gate, outcome)
        if is_beside(session, gate):
            return _beside(session, spec, gate, outcome)
        return _review(session, spec, gate, outcome)
    except InvariantBroken as error:
        return _broken(session, spec, gate, outcome, error)


def _beside(session: RunSession, spec: StepSpec, gate: Gate, outcome: Outcome) -> bool:
    """Write the outcome of a gate that the run went on from: an approval changes nothing about what comes next.

    If the state has changed so that an approved edit does not fit any more, the run fails.
    """
    by = who(outcome)
    try:
        if outcome.kind in permissions.AGREED:
            writes = outcome_writes.writes(session, gate, outcome)
            return session.save("answered", spec, writes, session.snapshot.next_step, by=by, slice_over=False)
        told = outcome_writes.describe_decision(session, gate, outcome, session.snapshot.state)
        if outcome.kind == Kind.REJECTED and outcome.then == "back":
            return _send_back(session, spec, gate, outcome, told, kind="answered")
        if outcome.kind == Kind.EXPIRED and outcome.then == "rollback":
            return _roll_back(session, spec, outcome, told, kind="answered")
        return session.save("answered", spec, told, spec.name, end="cancelled", reason=why_ended(outcome), by=by)
    except (InvariantBroken, ValueRefused) as error:
        reason = f"The decision at {quote_titles([gate.title])} does not fit the state any more: {error}"
        return session.save("answered", spec, {}, spec.name, end="failed", reason=reason, by=by)


def _broken(session: RunSession, spec: StepSpec, gate: Gate, outcome: Outcome, error: InvariantBroken) -> bool:
    """Ask how to go on after an outcome whose writes would break the rules of the state: none of them is saved.

    A question about a failure is asked again; after a review, a person may have its gate ask again.
    """
    if gate.kind == Gate.Kind.RECOVERY:
        return misfit(session, spec, outcome, error)
    with transaction.atomic():
        execute.keep(session, spec, error)
        session.save("recovery", spec, {}, spec.name, by=who(outcome), slice_over=False)
        recovery_gate.quarantine(session, spec, str(error))
    return False


def _review(session: RunSession, spec: StepSpec, gate: Gate, outcome: Outcome) -> bool:
    by = who(outcome)
    if outcome.kind in permissions.AGREED:
        writes = outcome_writes.writes(session, gate, outcome)
        if session.path.head.kind == "reopen":
            return _resume(session, spec, outcome, writes)
        return session.save("gate", spec, writes, session.plan.next_after(spec.name), by=by, slice_over=False)
    told = outcome_writes.describe_decision(session, gate, outcome, session.snapshot.state)
    if outcome.kind == Kind.REJECTED and outcome.then == "back":
        return _send_back(session, spec, gate, outcome, told)
    if outcome.kind == Kind.EXPIRED and outcome.then == "rollback":
        return _roll_back(session, spec, outcome, told)
    if outcome.kind == Kind.EXPIRED and spec.on_expire and not outcome.then:
        return session.save("gate", spec, told, spec.on_expire, by=by, slice_over=False)
    return session.save("gate", spec, told, spec.name, end="cancelled", reason=why_ended(outcome), by=by)


def _resume(session: RunSession, spec: StepSpec, outcome: Outcome, writes: dict[str, Any]) -> bool:
    """Go on with the effect for which the gate was opened again; keep the work done since it first closed.

    An edit of that work's inputs sends the run back to the gate instead, so that the work is undone and done anew.
    """
    by, effect = who(outcome), session.path.head.step
    asked, since = permissions.closed_last(session.path.places, spec.name)
    changed = touched_members(outcome.state_patch)
    back = asked is not None and permissions.edit_goes_back(session.plan, since, changed)
    target = _target(session, asked.parent) if asked is not None and back else None
    if target is None:
        return session.save("gate", spec, writes, effect, by=by, slice_over=False)
    edits = {name: writes[name] for name in changed}
    session.check_rules(edits, target.state)
    with transaction.atomic():
        session.save("gate", spec, writes, effect, by=by, slice_over=False)
        session.move("rewind", target, spec, edits, next_step=spec.name, by=by)
        hold_left_behind.hold(session.run, session.path, by=by)
    return True


def _send_back(
    session: RunSession, spec: StepSpec, gate: Gate, outcome: Outcome, told: dict[str, Any], kind: str = "gate"
) -> bool:
    """Save the outcome on its branch and move the head to where the named step last started, with the feedback.

    This is one transaction: in between, the run would be at a rejected gate with nothing left to do.
    """
    by, back_to = who(outcome), outcome.back_to or spec.on_reject
    start = permissions.sent_back_to(session.path.places, spec.name, back_to, beside=kind == "answered")
    target = _target(session, start and start.parent)
    said = Words(text=outcome.words, by=outcome.by_name or outcome.by, at=outcome.created_at, gate=gate.pk)
    feedback = append_words(session.agent, spec.feedback, [said])
    if target is None:
        return session.save(kind, spec, told | feedback, back_to, by=by, slice_over=False)
    session.check_rules(told | feedback, target.state)
    with transaction.atomic():
        hold_left_behind.lock(session.run)
        session.save(kind, spec, told, back_to, by=by, slice_over=False)
        session.move("rewind", target, spec, told | feedback, next_step=back_to, by=by)
        hold_left_behind.hold(session.run, session.path, by=by)
        again = session.plan.step(back_to)
        row = hold_left_behind.sent_to(session.run.pk, again, session.input_digest(again), session.path)
        if row is not None and not row.irreversible:  # that takes a confirmation, which a rewind asks for
            row.order_again(by=by)
    return True


def _roll_back(session: RunSession, spec: StepSpec, outcome: Outcome, told: dict[str, Any], kind: str = "gate") -> bool:
    """End the run, and before that undo what it did, as if it had been sent back to its beginning.

    Where retention removed the beginning, the run ends without that.
    """
    by, reason = who(outcome), why_ended(outcome)
    target = _target(session, session.path.places[0].id)
    if target is None:
        reason = f"{reason}. It could not be rolled back: its beginning was removed."
        return session.save(kind, spec, told, spec.name, end="cancelled", reason=reason, by=by)
    with transaction.atomic():
        hold_left_behind.lock(session.run)
        session.save(kind, spec, told, spec.name, by=by, slice_over=False)
        session.move("rewind", target, spec, {}, next_step=target.next_step, by=by)
        hold_left_behind.hold(session.run, session.path, by=by)
        session.run.end_later(Run.Status.CANCELLED, one_line(reason, 300), by=by)
    return True


def _target(session: RunSession, checkpoint: UUID | None) -> Snapshot | None:
    """Return the checkpoint to move the head to; None where it is missing or the run cannot go on from it."""
    try:
        target = store.load_checkpoint(checkpoint) if checkpoint is not None else None
    except NoSuchCheckpoint:  # removed by retention
        return None
    return target if target is not None and session.takes(target) else None
