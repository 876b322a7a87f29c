"""Applies the answer at a recovery gate: try again, take a result, skip, stop, or settle what was left behind.

It also says who decided at a gate, and why a run ended there.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction

from agents.children import orders
from agents.definition import outputs
from agents.effects import hold_left_behind, perform, readback, takeover, undo_left_behind
from agents.errors import OutputRefused, StepFailed
from agents.models import Effect
from agents.session import allowing_gate, child_runs, translate_history
from agents.session.run_session import RunSession
from agents.steps import execute, recovery_gate, repair
from approvals.cards.answer import STATUS_BY_ANSWER, TRIED_AGAIN, RecoveryAnswer
from approvals.engine_rules import effects
from approvals.english import quote_titles
from approvals.models import Gate, Outcome
from checkpoints.actors import SYSTEM, Actor
from checkpoints.errors import ValueRefused
from checkpoints.runs.plans import StepSpec


def why_ended(outcome: Outcome) -> str:
    """Say why the run ended at the gate, with the words of whoever ended it."""
    if outcome.kind == Outcome.Kind.EXPIRED:
        return "Nobody decided in time"
    if outcome.kind == Outcome.Kind.WITHDRAWN:
        return f"The gate was withdrawn: {outcome.words}"
    return f"Rejected by {name(outcome)}: {outcome.words}" if outcome.words else f"Rejected by {name(outcome)}"


def name(outcome: Outcome) -> str:
    """Return the name of whoever decided."""
    return outcome.by_name or outcome.by


def who(outcome: Outcome) -> Actor:
    """Return whoever decided; the system where nobody did."""
    return Actor(outcome.by, outcome.by_name) if outcome.by else SYSTEM


Kind = Outcome.Kind


def recover(session: RunSession, spec: StepSpec, gate: Gate, outcome: Outcome) -> bool:
    """Write the answer to a recovery gate; True if the session goes on. Raises InvariantBroken."""
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
                return perform.adopt(
                    session, spec, effect, outputs.check_entered(session.agent, spec, answer.get("value"))
                )
            except (ValueRefused, OutputRefused) as error:
                return misfit(session, spec, outcome, error)
        return _stop(session, spec, outcome) if choice != RecoveryAnswer.GAVE else _aside(session, spec, outcome)
    if effect is not None and effect.status == Effect.Status.DONE and not effect.again:
        return _aside(session, spec, outcome)  # a late report settled it: the step, where it is to come, adopts it
    if choice == RecoveryAnswer.HAPPENED and effect is not None:
        return _happened(session, spec, effect, outcome, answer.get("value"))
    if choice == RecoveryAnswer.ACCEPT:
        return repair.accept(session, spec, outcome, by=who(outcome))
    if choice == RecoveryAnswer.TAKE:
        return takeover.take(session, spec, recovery_gate.about(gate), by=who(outcome))
    if child_runs.asked_about(gate) and choice in TRIED_AGAIN:
        return _start_otherwise(session, spec, gate, outcome, choice)
    if choice == RecoveryAnswer.SKIP:
        return session.save("recovery", spec, {}, session.plan.next_after(spec.name), by=who(outcome))
    if choice == RecoveryAnswer.REVISE:
        note = f"{spec.title} failed, and its values are to be changed."
        gate_step = allowing_gate.asking_gate(session, spec)
        return session.save("reopen", spec, {}, gate_step, notes=[note], by=who(outcome), slice_over=False)
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
            undo_left_behind.answered(session, spec, key, choice, value, by=who(outcome))
            return _aside(session, spec, outcome)
    except (ValueRefused, OutputRefused) as error:
        return misfit(session, spec, outcome, error)


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
            row.kept(by=who(outcome))  # an undo in doubt stays in doubt, and so does the effect
            return _aside(session, spec, outcome)
    return _stop(session, spec, outcome, leave=True)


def _aside(session: RunSession, spec: StepSpec, outcome: Outcome) -> bool:
    """Go on with the next step of the head, whatever step the question was about."""
    return session.save("recovery", spec, {}, session.snapshot.next_step, by=who(outcome), slice_over=False)


def _retry(session: RunSession, spec: StepSpec, outcome: Outcome, effect: Effect | None, choice: str) -> bool:
    """Try the same step again; settle an effect's unknown row first, so that the next row has a key of its own."""
    by = who(outcome)
    with transaction.atomic():
        if effect is not None and effect.status == Effect.Status.UNKNOWN:
            if choice == RecoveryAnswer.NOT_HAPPENED:
                effect.failed(f"{name(outcome)} says that it did not happen", by=by)
            elif choice == RecoveryAnswer.AGAIN:
                effect.abandoned(by=by)
        told = repair.said_at_head(session, spec)
        return session.save("recovery", spec, told, spec.name, by=by, slice_over=False)


def _start_otherwise(session: RunSession, spec: StepSpec, gate: Gate, outcome: Outcome, choice: str) -> bool:
    """Try a step again that stopped at what another version started; with `withdraw` that is undone first."""
    with transaction.atomic():
        session.hold_token()
        orders.undo(session, child_runs.asked_about(gate) if choice == RecoveryAnswer.WITHDRAW else [])
        return session.save("recovery", spec, {}, spec.name, by=who(outcome), slice_over=False)


def _happened(session: RunSession, spec: StepSpec, effect: Effect, outcome: Outcome, value: Any) -> bool:
    """Record the result that a person read at the provider; ask again for one that does not fit.

    If the worker has denied meanwhile that it happened, ask too: one of the two is wrong.
    """
    by = who(outcome)
    if effect.status != Effect.Status.UNKNOWN:
        with transaction.atomic():
            readback.contradicted(effect, Effect.Status.DONE)
            _aside(session, spec, outcome)
            said = f"{name(outcome)} said that it happened; its worker, that it did not: {effect.error}"
            recovery_gate.quarantine(session, spec, said)
        return False
    try:
        output = outputs.check_entered(session.agent, spec, value)
        with transaction.atomic():
            effect.done(translate_history.packed(session.snapshot, effect, output), by=by)
            next_step = session.plan.next_after(spec.name)
            going = session.save("step", spec, output.writes, next_step, by=by, slice_over=False)
            effect.landed(session.snapshot.id)
            return going
    except (ValueRefused, OutputRefused) as error:
        return misfit(session, spec, outcome, error)


def misfit(session: RunSession, spec: StepSpec, outcome: Outcome, error: Exception) -> bool:
    """Record why the result that a person gave does not fit; the question is asked again."""
    with transaction.atomic():
        execute.keep(session, spec, StepFailed(f"The result that was given does not fit: {error}"))
        return _aside(session, spec, outcome)


def _stop(session: RunSession, spec: StepSpec, outcome: Outcome, *, leave: bool = False) -> bool:
    """End the run. `leave`: nobody answered about an effect to settle, so nothing more is settled."""
    by = who(outcome)
    step = quote_titles([spec.title])
    reason = f"{step} failed; stopped by {name(outcome)}"
    if outcome.kind in (Kind.EXPIRED, Kind.WITHDRAWN):
        reason = f"{step} failed; {why_ended(outcome)}"
    end = "failed"
    if leave:  # its work stays as it was; the reason says that this effect is not settled
        reason = f"{step} is not settled; {why_ended(outcome)}"
        end = session.run.ending or end
    if session.run.ending == "cancelled":  # cancelling withdrew the question, and is how the run ends
        end, reason = session.run.ending, session.run.ending_reason
        by = Actor(session.run.ending_by, session.run.ending_by_name)
    with transaction.atomic():
        if leave:  # nothing is settled any more, so the run is not on its way to another end
            session.hold_token()
            session.run.settled()
        return session.save("recovery", spec, {}, spec.name, end=end, reason=reason, by=by, leave=leave)
