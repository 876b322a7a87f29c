"""Applies a gate's outcome to its run: the decision closed the gate, the worker writes the rest under its token."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from agents.definition import outputs
from agents.definition.feedback import Words, appended
from agents.effects import hold_left_behind, late_reports, perform, takeover, undo_left_behind
from agents.errors import InvariantBroken, OutputRefused, StepFailed
from agents.gates import outcome_writes
from agents.models import Effect
from agents.session import allowing_gate, gates_beside, translate_history
from agents.session.run_session import RunSession
from agents.steps import execute, recovery_gate, repair
from agents.text import saved_language
from approvals.audit import evidence
from approvals.cards.recovery_answers import STATUS_BY_ANSWER, RecoveryAnswer
from approvals.engine_rules import effects, gates
from approvals.english import quoted
from approvals.models import Gate, Outcome
from checkpoints import crash_points, store
from checkpoints.actors import SYSTEM, Actor
from checkpoints.errors import NoSuchCheckpoint, ValueRefused
from checkpoints.runs.plans import StepSpec
from checkpoints.store import Snapshot
from checkpoints.values.patch import touched

from . import open_gates

Kind = Outcome.Kind


@saved_language()
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
            hold_left_behind.lock(session.run)
            gates_beside.lock(session.run.pk)
            going = _written(session, spec, gate, outcome)
    else:
        going = _written(session, spec, gate, outcome)
    crash_points.point("after_outcome", gate.step)
    return going


def _written(session: RunSession, spec: StepSpec, gate: Gate, outcome: Outcome) -> bool:
    try:
        if gate.kind == Gate.Kind.RECOVERY:
            return _recover(session, spec, gate, outcome)
        if open_gates.is_beside(session, gate):
            return _beside(session, spec, gate, outcome)
        return _review(session, spec, gate, outcome)
    except InvariantBroken as error:
        return _broken(session, spec, gate, outcome, error)


def _beside(session: RunSession, spec: StepSpec, gate: Gate, outcome: Outcome) -> bool:
    """Write the outcome of a gate that the run went on from: an approval changes nothing about what comes next.

    If the state has changed so that an approved edit does not fit any more, the run fails.
    """
    by = _who(outcome)
    try:
        if outcome.kind in gates.AGREED:
            writes = outcome_writes.writes(session, gate, outcome)
            return session.save("answered", spec, writes, session.snapshot.next_step, by=by, slice_over=False)
        told = outcome_writes.told(session, gate, outcome, session.snapshot.state)
        if outcome.kind == Kind.REJECTED and outcome.then == "back":
            return _send_back(session, spec, gate, outcome, told, kind="answered")
        return session.save("answered", spec, told, spec.name, end="cancelled", reason=_why_ended(outcome), by=by)
    except (InvariantBroken, ValueRefused) as error:
        reason = _("The decision at %(gate)s does not fit the state any more: %(error)s")
        reason %= {"gate": quoted([gate.title]), "error": error}
        return session.save("answered", spec, {}, spec.name, end="failed", reason=reason, by=by)


def _broken(session: RunSession, spec: StepSpec, gate: Gate, outcome: Outcome, error: InvariantBroken) -> bool:
    """Ask how to go on after an outcome whose writes would break the rules of the state: none of them is saved.

    A question about a failure is asked again; after a review, a person may have its gate ask again.
    """
    if gate.kind == Gate.Kind.RECOVERY:
        return _misfit(session, spec, outcome, error)
    with transaction.atomic():
        execute.keep(session, spec, error)
        session.save("recovery", spec, {}, spec.name, by=_who(outcome), slice_over=False)
        recovery_gate.quarantine(session, spec, str(error))
    return False


def _review(session: RunSession, spec: StepSpec, gate: Gate, outcome: Outcome) -> bool:
    by = _who(outcome)
    if outcome.kind in gates.AGREED:
        writes = outcome_writes.writes(session, gate, outcome)
        if session.path.head.kind == "reopen":
            return _resume(session, spec, outcome, writes)
        return session.save("gate", spec, writes, session.plan.next_after(spec.name), by=by, slice_over=False)
    told = outcome_writes.told(session, gate, outcome, session.snapshot.state)
    if outcome.kind == Kind.REJECTED and outcome.then == "back":
        return _send_back(session, spec, gate, outcome, told)
    if outcome.kind == Kind.EXPIRED and spec.on_expire:
        return session.save("gate", spec, told, spec.on_expire, by=by, slice_over=False)
    return session.save("gate", spec, told, spec.name, end="cancelled", reason=_why_ended(outcome), by=by)


def _resume(session: RunSession, spec: StepSpec, outcome: Outcome, writes: dict[str, Any]) -> bool:
    """Go on with the effect for which the gate was opened again; keep the work done since it first closed.

    An edit of that work's inputs sends the run back to the gate instead, so that the work is undone and done anew.
    """
    by, effect = _who(outcome), session.path.head.step
    asked, since = gates.closed_last(session.path.places, spec.name)
    changed = touched(outcome.state_patch)
    back = asked is not None and gates.edit_goes_back(session.plan, since, changed)
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
    by, back_to = _who(outcome), outcome.back_to or spec.on_reject
    start = gates.sent_back_to(session.path.places, spec.name, back_to, beside=kind == "answered")
    target = _target(session, start and start.parent)
    said = Words(text=outcome.words, by=outcome.by_name or outcome.by, at=outcome.created_at, gate=gate.pk)
    feedback = appended(session.agent, spec.feedback, [said])
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


def _target(session: RunSession, checkpoint: UUID | None) -> Snapshot | None:
    """Return the checkpoint to move the head to; None where it is missing or the run cannot go on from it."""
    try:
        target = store.load_checkpoint(checkpoint) if checkpoint is not None else None
    except NoSuchCheckpoint:  # removed by retention
        return None
    return target if target is not None and session.takes(target) else None


def _recover(session: RunSession, spec: StepSpec, gate: Gate, outcome: Outcome) -> bool:
    answer = outcome.answered or {}
    choice = answer.get("choice")
    # An answer about an effect that was left behind comes first: the run might adopt that effect from here.
    if choice in STATUS_BY_ANSWER:
        return _left(session, spec, gate, outcome, answer)
    if _asks(gate, *STATUS_BY_ANSWER):
        return _unanswered(session, spec, gate, outcome)
    effect = perform.newest(session, spec) if spec.kind == "effect" else None
    if _asks(gate, RecoveryAnswer.GAVE):
        if choice == RecoveryAnswer.GAVE and effect is not None and effect.adoptable:
            try:
                return perform.adopt(session, spec, effect, outputs.told(session.agent, spec, answer.get("value")))
            except (ValueRefused, OutputRefused) as error:
                return _misfit(session, spec, outcome, error)
        return _stop(session, spec, outcome) if choice != RecoveryAnswer.GAVE else _aside(session, spec, outcome)
    if effect is not None and effect.status == Effect.Status.DONE and not effect.again:
        return _aside(session, spec, outcome)  # a late report settled it: the step, where it is to come, adopts it
    if choice == RecoveryAnswer.HAPPENED and effect is not None:
        return _happened(session, spec, effect, outcome, answer.get("value"))
    if choice == RecoveryAnswer.ACCEPT:
        return repair.accept(session, spec, outcome, by=_who(outcome))
    if choice == RecoveryAnswer.TAKE:
        return takeover.take(session, spec, recovery_gate.about(gate), by=_who(outcome))
    if choice == RecoveryAnswer.SKIP:
        return session.save("recovery", spec, {}, session.plan.next_after(spec.name), by=_who(outcome))
    if choice == RecoveryAnswer.REVISE:
        note = _("%(step)s failed, and its values are to be changed.") % {"step": spec.title}
        gate_step = allowing_gate.asking_gate(session, spec)
        return session.save("reopen", spec, {}, gate_step, notes=[note], by=_who(outcome), slice_over=False)
    if choice in (RecoveryAnswer.RETRY, RecoveryAnswer.NOT_HAPPENED, RecoveryAnswer.AGAIN, RecoveryAnswer.DO_AGAIN):
        return _retry(session, spec, outcome, effect, choice)
    asked = Effect.objects.filter(run=session.run, key=recovery_gate.about(gate)).first()
    if outcome.kind == Kind.WITHDRAWN and asked is not None and asked.status not in effects.IN_DOUBT:
        return _aside(session, spec, outcome)  # a late report answered it
    return _stop(session, spec, outcome)


def _left(session: RunSession, spec: StepSpec, gate: Gate, outcome: Outcome, answer: dict[str, Any]) -> bool:
    """Record the answer about an effect that the run left behind, and go on from the head."""
    key, choice, value = recovery_gate.about(gate), answer["choice"], answer.get("value")
    try:
        with transaction.atomic():
            undo_left_behind.answered(session, spec, key, choice, value, by=_who(outcome))
            return _aside(session, spec, outcome)
    except (ValueRefused, OutputRefused) as error:
        return _misfit(session, spec, outcome, error)


def _asks(gate: Gate, *answers: str) -> bool:
    """Tell whether the gate offers one of these answers."""
    choices = gate.asked.question["choices"] if gate.asked.question else []
    return any(each["id"] in answers for each in choices)


def _unanswered(session: RunSession, spec: StepSpec, gate: Gate, outcome: Outcome) -> bool:
    """Handle a closed question about an effect left behind that nobody answered.

    Go on if a late report settled the effect, else end the run unsettled. If the run was cancelled meanwhile, this
    effect stays as it is, and the others are settled.
    """
    row = Effect.objects.select_related("run").get(run=session.run, key=recovery_gate.about(gate))
    if not undo_left_behind.open_of(row):
        return _aside(session, spec, outcome)
    if outcome.kind == Kind.WITHDRAWN and session.run.ending == "cancelled":
        with transaction.atomic():
            hold_left_behind.lock(session.run)
            row.kept(by=_who(outcome))  # an undo in doubt stays in doubt, and so does the effect
            return _aside(session, spec, outcome)
    return _stop(session, spec, outcome, leave=True)


def _aside(session: RunSession, spec: StepSpec, outcome: Outcome) -> bool:
    """Go on with the next step of the head, whatever step the question was about."""
    return session.save("recovery", spec, {}, session.snapshot.next_step, by=_who(outcome), slice_over=False)


def _retry(session: RunSession, spec: StepSpec, outcome: Outcome, effect: Effect | None, choice: str) -> bool:
    """Try the same step again; settle an effect's unknown row first, so that the next row has a key of its own."""
    by = _who(outcome)
    with transaction.atomic():
        if effect is not None and effect.status == Effect.Status.UNKNOWN:
            if choice == RecoveryAnswer.NOT_HAPPENED:
                effect.failed(_("%(person)s says that it did not happen") % {"person": _name(outcome)}, by=by)
            elif choice == RecoveryAnswer.AGAIN:
                effect.abandoned(by=by)
        told = repair.said_at_head(session, spec)
        return session.save("recovery", spec, told, spec.name, by=by, slice_over=False)


def _happened(session: RunSession, spec: StepSpec, effect: Effect, outcome: Outcome, value: Any) -> bool:
    """Record the result that a person read at the provider; ask again for one that does not fit.

    If the worker has denied meanwhile that it happened, ask too: one of the two is wrong.
    """
    by = _who(outcome)
    if effect.status != Effect.Status.UNKNOWN:
        with transaction.atomic():
            late_reports.contradicted(effect, Effect.Status.DONE)
            _aside(session, spec, outcome)
            said = _("%(person)s said that it happened; its worker, that it did not: %(error)s")
            recovery_gate.quarantine(session, spec, said % {"person": _name(outcome), "error": effect.error})
        return False
    try:
        output = outputs.told(session.agent, spec, value)
        with transaction.atomic():
            effect.done(translate_history.packed(session.snapshot, effect, output), by=by)
            next_step = session.plan.next_after(spec.name)
            going = session.save("step", spec, output.writes, next_step, by=by, slice_over=False)
            effect.landed(session.snapshot.id)
            return going
    except (ValueRefused, OutputRefused) as error:
        return _misfit(session, spec, outcome, error)


def _misfit(session: RunSession, spec: StepSpec, outcome: Outcome, error: Exception) -> bool:
    """Record why the result that a person gave does not fit; the question is asked again."""
    with transaction.atomic():
        execute.keep(
            session, spec, StepFailed(_("The result that was given does not fit: %(error)s") % {"error": error})
        )
        return _aside(session, spec, outcome)


def _stop(session: RunSession, spec: StepSpec, outcome: Outcome, *, leave: bool = False) -> bool:
    """End the run. `leave`: nobody answered about an effect to settle, so nothing more is settled."""
    by = _who(outcome)
    words = {"step": quoted([spec.title]), "person": _name(outcome), "why": _why_ended(outcome)}
    reason = _("%(step)s failed; stopped by %(person)s") % words
    if outcome.kind in (Kind.EXPIRED, Kind.WITHDRAWN):
        reason = _("%(step)s failed; %(why)s") % words
    end = "failed"
    if leave:  # its work stays as it was; the reason says that this effect is not settled
        reason = _("%(step)s is not settled; %(why)s") % words
        end = session.run.ending or end
    if session.run.ending == "cancelled":  # cancelling withdrew the question, and is how the run ends
        end, reason = session.run.ending, session.run.ending_reason
        by = Actor(session.run.ending_by, session.run.ending_by_name)
    with transaction.atomic():
        if leave:  # nothing is settled any more, so the run is not on its way to another end
            session.hold_token()
            session.run.settled()
        return session.save("recovery", spec, {}, spec.name, end=end, reason=reason, by=by, leave=leave)


def _why_ended(outcome: Outcome) -> str:
    if outcome.kind == Kind.EXPIRED:
        return _("Nobody decided in time")
    if outcome.kind == Kind.WITHDRAWN:
        return _("The gate was withdrawn: %(reason)s") % {"reason": outcome.words}
    said = _("Rejected by %(person)s: %(reason)s") if outcome.words else _("Rejected by %(person)s")
    return said % {"person": _name(outcome), "reason": outcome.words}


def _name(outcome: Outcome) -> str:
    return outcome.by_name or outcome.by


def _who(outcome: Outcome) -> Actor:
    return Actor(outcome.by, outcome.by_name) if outcome.by else SYSTEM
