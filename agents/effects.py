"""Performing effects: at most once per key, and never without a permission for exactly this.

The intent row and the grant's consumption are one transaction, guarded by the run's token, before anything is
sent. What came of it and the checkpoint are one transaction afterwards. A row that still says *intended* when the
next worker comes was left by one that died: nobody knows what happened, and only an idempotent effect is simply
sent again, under its old key.

Locks go one way, or two workers wait for each other: the effect's row, then a gate's, then the run's.
"""

from __future__ import annotations

import structlog
from django.db import connection, transaction

from approvals.models import Gate
from checkpoints import actors, claims, digests, ledger
from checkpoints.errors import Fenced
from checkpoints.plans import StepSpec

from . import allowances, crash, http, outputs, permits, recovery, steps
from .errors import EffectFailed, EffectUnknown, NotGranted, Retry, StepFailed
from .models import Effect
from .planning import KEY
from .slices import Slice

Status = Effect.Status
UNSETTLED = (Status.INTENDED, Status.UNKNOWN)
log = structlog.get_logger()


def perform(slice: Slice, spec: StepSpec) -> bool:
    """Take the effect one step on from whatever its rows say; says whether the slice goes on."""
    row = newest(slice, spec)
    if row is not None and row.status == Status.DONE:
        return adopt(slice, spec, row)
    if row is not None and row.status in UNSETTLED:
        return _resume(slice, spec, row)
    unsent = row is not None and row.status == Status.FAILED and row.base == slice.snapshot.id
    try:
        # Before anybody is asked how to go on: "try again" shows no arguments, so it may only follow what did.
        permit = permits.Permit(None) if unsent else permits.permit(slice, spec)
    except NotGranted as reason:
        return reopen(slice, spec, reason)
    if slice.attempt > spec.retry + 1:
        return steps.died(slice, spec)
    crash.point("before_step", spec.name)
    if row is not None and unsent:
        return _send(slice, spec, _again(slice, row))
    generation = 0 if row is None else row.generation + 1
    return _send(slice, spec, intend(slice, spec, permit, generation))


def newest(slice: Slice, spec: StepSpec) -> Effect | None:
    """The row of this effect with this input at this occurrence, in its latest generation.

    Where there is none, a row of the same step that nobody has settled yet comes first: whatever it did has to be
    known before the step is done with another input.
    """
    digest = slice.input_digest(spec)
    rows = Effect.objects.filter(run_id=slice.run.pk, step=spec.name).select_related("run").order_by("-generation")
    mine = rows.filter(input_digest=digest, occurrence=slice.path.occurrences(spec.name, digest)).first()
    return mine or rows.filter(status__in=UNSETTLED).first()


def key_of(slice: Slice, spec: StepSpec, generation: int) -> str:
    """The idempotency key: H(run, step, input digest, occurrence, generation), hex."""
    digest = slice.input_digest(spec)
    occurrence = slice.path.occurrences(spec.name, digest)
    return digests.of_value(["effect", slice.run.pk, spec.name, digest.hex(), occurrence, generation]).hex()


def intend(slice: Slice, spec: StepSpec, permit: permits.Permit, generation: int) -> Effect:
    """Write the intent and consume the grant, under the run's token. Raises Fenced."""
    digest = slice.input_digest(spec)
    with transaction.atomic():
        _hold_token(slice)
        row = Effect.objects.create(
            run=slice.run,
            step=spec.name,
            key=key_of(slice, spec, generation),
            grant=permit.grant,
            base=slice.snapshot.id,
            input_digest=digest,
            occurrence=slice.path.occurrences(spec.name, digest),
            generation=generation,
            token=slice.claim.token,
            irreversible=spec.irreversible,
        )
        data = {"effect": row.pk, "step": spec.name, "key": row.key, "attempts": 1}
        ledger.record("effect.intended", subject=f"effect:{row.pk}", run=slice.run, by=slice.by, data=data)
    crash.point("after_intent", row.step)
    return row


def adopt(slice: Slice, spec: StepSpec, row: Effect) -> bool:
    """It was done already, on this input: write the recorded result, send nothing."""
    output = outputs.unpacked(row.returned)
    log.info("effect.adopted", step=spec.name, key=row.key)
    note = f"Done before under the key {row.key[:8]}; its recorded result was taken, nothing was sent."
    return slice.executed(spec, output.writes, output.goto, took=0.0, notes=[note])


def reopen(slice: Slice, spec: StepSpec, reason: NotGranted) -> bool:
    """Nothing may run: go back to the gate that can allow it. Says whether the slice goes on."""
    log.warning("effect.not_granted", step=spec.name, reason=str(reason))
    outcome = allowances.last_outcome(slice, spec)
    asking = allowances.gates_for(slice, spec)
    gate = outcome.gate.step if outcome is not None and outcome.gate.step in asking else asking[-1]
    return slice.save("reopen", spec, {}, gate, counts=False, notes=[str(reason)])


def _resume(slice: Slice, spec: StepSpec, row: Effect) -> bool:
    """An earlier worker, or an earlier attempt, left it open whether the effect happened."""
    with transaction.atomic():
        if row.status == Status.INTENDED:
            row.unknown("The worker was gone before the answer came.", by=slice.by)
        mine = row.base == slice.snapshot.id and bytes(row.input_digest) == slice.input_digest(spec)
        if not (spec.idempotent and mine and slice.attempt <= spec.retry + 1):
            recovery.unknown(slice, spec, row, row.error)
            return False
    crash.point("before_step", spec.name)
    doubt = row.error or "An earlier attempt got no answer."
    return _send(slice, spec, _again(slice, row), doubt=doubt)


def _again(slice: Slice, row: Effect) -> Effect:
    """Intend the same key once more, under this claim's token. Raises Fenced."""
    with transaction.atomic():
        row.retried(token=slice.claim.token, by=slice.by)
        _hold_token(slice)
    crash.point("after_intent", row.step)
    return row


def _send(slice: Slice, spec: StepSpec, row: Effect, *, doubt: str = "") -> bool:
    """Call the effect's method and record what came of it; says whether the slice goes on.

    `doubt` is why nobody knows what an earlier attempt under this key did, where that is so.
    """
    if slice.beat.stale() and not claims.renew(slice.claim):
        raise Fenced
    extra = {KEY: row.key} if _takes_key(slice, spec) else {}
    try:
        returned = steps.call(slice, spec, **extra)
        crash.point("after_effect", spec.name, returned.value)
    except steps.RAISED as error:
        return _not_done(slice, spec, row, _meaning(error, doubt), error)
    try:
        output = outputs.checked(slice.agent, slice.plan, spec, returned.value)
        with transaction.atomic():
            row.done(outputs.packed(output), by=slice.by)
            going = slice.executed(spec, output.writes, output.goto, took=returned.took, notes=returned.notes)
    except Fenced:
        report(row, outputs.packed(output))
        raise
    except steps.USELESS_TO_REPEAT as error:
        unusable = EffectUnknown(f"It ran, but what it returned cannot be saved: {error}")
        return _not_done(slice, spec, row, unusable, error, again=False)
    return going


def _not_done(
    slice: Slice,
    spec: StepSpec,
    row: Effect,
    end: EffectFailed | EffectUnknown,
    error: BaseException,
    *,
    again: bool = True,
) -> bool:
    """Record that the effect failed or is unknown; try again where that is safe, else ask. Ends the slice."""
    failed = isinstance(end, EffectFailed)
    safe = end.retry if isinstance(end, EffectFailed) else spec.idempotent
    log.warning("effect.failed" if failed else "effect.unknown", step=spec.name, key=row.key, error=str(end))
    with transaction.atomic():
        (row.failed if failed else row.unknown)(str(end), by=slice.by)
        steps.keep(slice, spec, error)
        if safe and again and slice.attempt <= spec.retry:
            steps.again_later(slice, error)
        elif failed:
            recovery.quarantine(slice, spec, str(end))
        else:
            recovery.unknown(slice, spec, row, str(end))
    return False


def _meaning(error: BaseException, doubt: str) -> EffectFailed | EffectUnknown:
    """What an exception of the effect's method says about it; unknown unless it is known to be a failure.

    A refusal speaks for this attempt alone: where an earlier one under the key is in doubt, it stays in doubt.
    """
    found = _found(error)
    if isinstance(found, EffectFailed) and doubt:
        return EffectUnknown(f"{doubt} Sent again under its key: {found}")
    return found


def _found(error: BaseException) -> EffectFailed | EffectUnknown:
    if isinstance(error, (EffectFailed, EffectUnknown)):
        return error
    if isinstance(error, Retry):
        return EffectFailed(str(error), retry=True)
    if isinstance(error, StepFailed):
        return EffectFailed(str(error))
    found = http.classify(error) if isinstance(error, Exception) else None
    return found or EffectUnknown(steps.said(error))


def report(row: Effect, result: object) -> None:
    """A worker that was fenced after its effect was done: no checkpoint, but its word settles the row.

    It answers whoever was asked what became of the effect, so that question is withdrawn.
    """
    try:
        with transaction.atomic():
            row.done(result, by=actors.SYSTEM)
            asking = Gate.objects.open().filter(run=row.run, step=row.step, kind=Gate.Kind.RECOVERY)
            for gate in list(asking.select_for_update().order_by("pk")):
                gate.withdraw(by=actors.SYSTEM, reason="The worker reported that it happened.")
    except Fenced:
        log.info("effect.reported_late", run=row.run_id, step=row.step, key=row.key)


def _hold_token(slice: Slice) -> None:
    """Lock the run's row while the token still holds. Raises Fenced."""
    slice.check()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM checkpoints_run WHERE id = %s AND token = %s AND status = 'running' FOR UPDATE",
            [slice.run.pk, slice.claim.token],
        )
        if cursor.fetchone() is None:
            raise Fenced


def _takes_key(slice: Slice, spec: StepSpec) -> bool:
    method = getattr(slice.agent, spec.name)
    return KEY in method.__code__.co_varnames[: method.__code__.co_argcount + method.__code__.co_kwonlyargcount]
