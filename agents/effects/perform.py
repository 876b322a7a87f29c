"""Performs effects: at most once per key, and never without a permission for exactly this.

The intent row and the grant's consumption are one transaction, guarded by the run's token, before anything is
sent. The result and the checkpoint are one transaction afterwards. A row that still says *intended* when the
next worker comes was left by one that died: nobody knows what happened, and only an idempotent effect is simply
sent again, under its old key.

Locks are taken in one order, or two workers could deadlock: the effect's row, then a gate's, then the run's.

It also skips an effect whose action people rejected, or answered in its place, while the run goes on.

The checkpoint is no execution of the step, so that nothing is adopted by it and what the step did on another branch is
not taken for done. The agent was told of the refusal in the gate's own checkpoint.

It also asks for an effect's result when the state may not take the recorded one: it would break the agent's own rules.

The effect happened, so its result is in the ledger before anybody is asked, and it is not performed again. What a
person enters instead is written to the state; or they change the state first, by an edit, and the result is adopted.
"""

from __future__ import annotations

import structlog
from django.db import transaction

from agents.definition import fields, outputs
from agents.errors import EffectFailed, EffectUnknown, InvariantBroken, NotGranted, StepFailed, UpcastFailed
from agents.gates import preconditions
from agents.models import Effect
from agents.session import allowing_gate, run_path, translate_history
from agents.session.performer import Returned
from agents.session.run_session import RunSession
from agents.steps import execute, recovery_gate, retry
from approvals.cards import verdicts
from approvals.cards.action import RESPOND, Action, SettledAction
from approvals.cards.answer import RecoveryAnswer
from approvals.engine_rules import effects, permissions
from checkpoints import crash_points
from checkpoints.errors import Fenced, NotVerified, ValueRefused
from checkpoints.layout.rows import new_id
from checkpoints.postgresql.prepared_rows import build_insertion
from checkpoints.runs.plans import StepSpec

from . import authorize, classify_failure, ledger, readback, takeover, undo_left_behind
from .readback import ReadBack


def keep(session: RunSession, spec: StepSpec, row: Effect, result: object, error: InvariantBroken) -> bool:
    """Record that the effect happened, with its result, and ask a person. Returns False: the run waits. Raises Fenced.

    The result, the failure and the question are one transaction.
    """
    row.refresh_from_db()  # the transaction that would have saved the state too was rolled back
    try:
        with transaction.atomic():
            row.done(result, by=session.by)
            ask(session, spec, row, error)
    except Fenced:
        readback.done(row, result)
        raise
    return False


def ask(session: RunSession, spec: StepSpec, row: Effect, error: InvariantBroken) -> None:
    """Ask for a result of an effect that was done, in the place of one that breaks the state's rules. Raises Fenced."""
    gave = recovery_gate.choice(
        RecoveryAnswer.GAVE, "Go on with this result", recovery_gate.result_schema(session, spec)
    )
    step = recovery_gate.named(spec)
    choices = [gave, recovery_gate.choice(RecoveryAnswer.STOP, "Stop the run")]
    text = (
        f"{step} is done, under its key {row.key}, and its result is kept. With that result, the state would break its "
        f"own rules. Enter the result that the run goes on with, or edit the state so that it can take it. {step} is "
        "not done again."
    )
    title, reasons = f"The result of {step} does not fit:", [f"{step} is done and was not undone"]
    with transaction.atomic():
        execute.keep(session, spec, error)
        recovery_gate.ask(
            session, spec, title, text, choices, reasons=reasons, error=str(error), effect=row, permits=False
        )


def pass_by(session: RunSession, spec: StepSpec, action: Action, settled: SettledAction) -> bool:
    """Save a checkpoint that skips the effect, with the answer in its place; True if the session goes on."""
    log.info("effect.passed", step=spec.name, action=action.id, verdict=settled.verdict)
    try:
        given = verdicts.written(session.plan, action)
        writes = {name: fields.dumped(session.agent.State, name, value) for name, value in given.items()}
    except ValueRefused as error:
        return execute.failed(session, spec, StepFailed(f"The answer that was given does not fit: {error}"))
    note = f"{settled.by} rejected it, so it did not run: {settled.reason}"
    if settled.verdict == RESPOND:
        note = f"{settled.by} answered instead, so it did not run."
    try:
        return session.save("skipped", spec, writes, session.plan.next_after(spec.name), notes=[note])
    except InvariantBroken as error:
        return execute.failed(session, spec, error)


Status = Effect.Status
log = structlog.get_logger()


def perform(session: RunSession, spec: StepSpec) -> bool:
    """Adopt, resume, skip, authorise or send the effect, as its rows say; True if the session goes on.

    Raises NotVerified where the rows differ from the recorded events.
    """
    refused = allowing_gate.refused(session, spec)
    if refused is not None:  # even where it was done before: that is off the path now, and will be undone
        return pass_by(session, spec, *refused)
    row = newest(session, spec)
    if row is not None and row.adoptable:
        return adopt(session, spec, row)
    if row is not None:
        row.verified()
    if row is not None and row.left_open and effects.doubted(row):
        with transaction.atomic():
            row.doubted(by=session.by)
            session.hold_token()
    if row is not None and effects.doubted(row):
        return _resume(session, spec, row)
    origin = takeover.origin_of(session, spec) if row is None else None
    if origin is not None:
        recovery_gate.take_over(session, spec, origin)
        return False
    unsent = row is not None and row.status == Status.FAILED and session.path.stands_at(row.base)
    try:
        # Before anybody is asked how to go on: "try again" shows no arguments, so it may only follow what did.
        permit = authorize.EffectPermit(None) if unsent else authorize.permit(session, spec)
        if row is not None and unsent:
            authorize.recheck(session, spec, row)
    except NotGranted as reason:
        return reopen(session, spec, reason)
    except preconditions.FAILED as error:
        return execute.failed(session, spec, error)
    if retry.looping(session, spec):
        return False
    # The effect that it replaces is undone first, so that the two are never both done.
    left = run_path.due(session.unsettled(), session.plan, about_to=spec.name)
    if left and not undo_left_behind.settle(session, left):
        return False
    if session.attempt > spec.retry + 1:  # attempts at an undo do not count for this effect
        return execute.died(session, spec)
    if not session.performer.begins(session, spec):
        return False
    crash_points.point("before_step", spec.name)
    if row is not None and unsent:
        return _send(session, spec, _again(session, row))
    before = newest(session, spec) if left else row  # settling may have changed it
    return _send(session, spec, intend(session, spec, permit, 0 if before is None else before.generation + 1))


def newest(session: RunSession, spec: StepSpec) -> Effect | None:
    """Return the effect's row for the present input and occurrence, in its latest generation."""
    digest = session.input_digest(spec)
    return Effect.objects.newest(session.run.pk, spec.name, digest, session.path.occurrences(spec.name, digest))


def intend(session: RunSession, spec: StepSpec, permit: authorize.EffectPermit, generation: int) -> Effect:
    """Write the intent and consume the grant, under the run's token. Raises Fenced."""
    columns = ledger.columns(session, spec, generation)
    with transaction.atomic():
        row = Effect(pk=session.effect_number(), grant=permit.grant, action=permit.action, **columns)
        row.intended(by=session.by, beside=build_insertion([row]))
    crash_points.point("after_intent", row.step)
    return row


def adopt(session: RunSession, spec: StepSpec, row: Effect, told: outputs.StepOutput | None = None) -> bool:
    """Write the recorded result of an effect that was done already on this input, and send nothing.

    If the result cannot be upgraded to this version, or the state may not take it, a person is asked for it; `told` is
    what they entered. Raises NotVerified where the record is not what was written when it was done, and
    InvariantBroken for `told`.
    """
    crash_points.point("before_adopt", spec.name)
    row.verified()
    try:
        output = told or translate_history.output_of(row, session.run.plan)
    except UpcastFailed as error:
        recovery_gate.not_readable(session, spec, row, str(error))
        return False
    log.info("effect.adopted", step=spec.name, key=row.key)
    note = f"Done before under the key {row.key[:8]}; its recorded result was reused, nothing was sent."
    kind = "step" if run_path.awaited(row, session.path) else "reused"
    try:
        with transaction.atomic():
            row.adopted(by=session.by)
            going = session.executed(spec, output.writes, output.goto, took=0.0, notes=[note], kind=kind)
            row.landed(session.snapshot.id)
    except InvariantBroken as error:
        if told is not None:
            raise
        row.refresh_from_db()
        ask(session, spec, row, error)
        return False
    return going


def reopen(session: RunSession, spec: StepSpec, reason: NotGranted) -> bool:
    """Go back to the gate that can give the missing permission; nothing may run. True if the session goes on."""
    log.warning("effect.not_granted", step=spec.name, reason=str(reason))
    outcome = allowing_gate.last_outcome(session, spec)
    gate = permissions.reopened(session.plan, spec.name, outcome.gate.step if outcome is not None else "")
    return session.save("reopen", spec, {}, gate, notes=[str(reason)])


def _resume(session: RunSession, spec: StepSpec, row: Effect) -> bool:
    """Resume an effect of which an earlier worker or attempt left unknown whether it happened.

    Ask the provider if it can tell. Send the effect again if it is idempotent or the provider says that it did not
    happen, as long as its permission holds. Else ask a person.
    """
    if row.status == Status.INTENDED:
        row.unknown("The worker was gone before the answer came.", by=session.by)
    found = readback.read_back(session, spec, row)
    if found is ReadBack.HAPPENED:
        return adopt(session, spec, row)
    denied, lapsed = found is ReadBack.NOT_HAPPENED, _lapsed(session, spec, row)
    if denied and lapsed:
        with transaction.atomic():
            row.failed("The provider says that it did not happen.", by=session.by)
            session.hold_token()
        return perform(session, spec)  # anew, and so not without a permission
    repeats = spec.idempotent and not lapsed
    if session.attempt > spec.retry + 1 or not (repeats or denied or spec.readable):
        recovery_gate.unknown(session, spec, row, row.error, lapsed=lapsed)
        return False
    if not (repeats or denied):
        execute.queue_again(
            session.claim, retry.backoff(session.attempt, spec.backoff), "asks the provider again", by=session.by
        )
        return False
    if not session.performer.begins(session, spec):
        return False
    crash_points.point("before_step", spec.name)
    doubt = "" if denied else row.error or "An earlier attempt got no answer."
    return _send(session, spec, _again(session, row), doubt=doubt)


def _lapsed(session: RunSession, spec: StepSpec, row: Effect) -> str:
    """Say why the permission under which the effect was begun no longer holds; empty where it does."""
    try:
        authorize.holds(session, spec, row)
    except NotGranted as reason:
        return str(reason)
    return ""


def _again(session: RunSession, row: Effect) -> Effect:
    """Write the intent of the same key again, under this claim's token. Raises Fenced."""
    with transaction.atomic():
        row.retried(token=session.claim.token, by=session.by)
        session.hold_token()
    crash_points.point("after_intent", row.step)
    return row


def _send(session: RunSession, spec: StepSpec, row: Effect, *, doubt: str = "") -> bool:
    """Send the effect and record its result or failure; True if the session goes on.

    `doubt`: why it is unknown what an earlier attempt under this key did; empty where it is known.
    """
    try:
        returned = session.performer.effect(session, spec, row)
        if returned is None:
            return False
        crash_points.point("after_effect", spec.name, returned.value)
    except (Fenced, NotVerified):
        raise
    except execute.RAISED as error:
        return not_done(session, spec, row, classify_failure.of(error, doubt), error)
    return done(session, spec, row, returned)


def done(session: RunSession, spec: StepSpec, row: Effect, returned: Returned) -> bool:
    """Record that the effect happened, with its result; True if the session goes on. Raises Fenced."""
    try:
        output = outputs.checked(session.agent, session.plan, spec, returned.value)
        result = translate_history.packed(session.snapshot, row, output)
        id = new_id()
        with transaction.atomic():
            row.done(result, by=session.by, landing=id)
            going = session.executed(
                spec,
                output.writes,
                output.goto,
                took=returned.took,
                notes=returned.notes,
                id=id,
                beside=returned.beside,
            )
    except Fenced:
        readback.done(row, result)
        raise
    except InvariantBroken as error:
        return keep(session, spec, row, result, error)
    except execute.USELESS_TO_REPEAT as error:
        unusable = EffectUnknown(f"It ran, but what it returned cannot be saved: {error}")
        return not_done(session, spec, row, unusable, error, again=False)
    return going


def not_done(
    session: RunSession,
    spec: StepSpec,
    row: Effect,
    end: classify_failure.End,
    error: BaseException,
    *,
    again: bool = True,
) -> bool:
    """Record that the effect failed or is unknown; try again later where that is safe, else ask. Ends the session."""
    failed, words = isinstance(end, EffectFailed), session.clean(classify_failure.said(end))
    safe = end.retry if isinstance(end, EffectFailed) else spec.idempotent or bool(spec.readable)
    log.warning("effect.failed" if failed else "effect.unknown", step=spec.name, key=row.key, error=words)
    try:
        with transaction.atomic():
            (row.failed if failed else row.unknown)(words, by=session.by)
            execute.keep(session, spec, error)
            if safe and again and session.attempt <= spec.retry:
                execute.again_later(session, spec, error)
            elif failed:
                recovery_gate.quarantine(session, spec, words)
            else:
                recovery_gate.unknown(session, spec, row, words)
    except Fenced:
        if failed:
            readback.failed(row, words)
        raise
    return False
