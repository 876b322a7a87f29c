"""A gate step: ask people, and let go of the run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.db import transaction

from agents.definition import fields
from agents.definition.plan_builder import OBSERVED
from agents.errors import OutputRefused, StepFailed
from agents.models import Effect
from agents.session import allowing_gate
from agents.session.run_session import RunSession
from agents.steps import execute
from approvals.cards import binding
from approvals.cards.action import Action
from approvals.cards.card import Card
from approvals.decisions import edit_state
from approvals.errors import AskedTooOften
from approvals.gates.opening import open_gate
from approvals.models import Gate
from checkpoints import crash_points, store
from checkpoints.errors import Fenced, NoSuchCheckpoint
from checkpoints.runs.plans import StepSpec
from checkpoints.store import claims

from . import preconditions, reapproval, reopen


def ask(slice: RunSession, spec: StepSpec) -> bool:
    """Run the gate's method and open its gate; without a card the run goes on. Says whether the slice goes on.

    Raises AskedTooOften, which is no failed attempt.
    """
    crash_points.point("before_step", spec.name)
    try:
        seen = preconditions.first_looks(slice, spec)
        returned = slice.performer.step(slice, spec, **({} if seen is None else {OBSERVED: seen}))
        if returned is None:
            return False
        crash_points.point("after_step", spec.name, returned.value)
        card = returned.value
        if card is None and spec.asks:
            raise OutputRefused(f"The gate {spec.name} says `-> Card` and asked nothing; say `-> Card | None`.")
        if card is not None and not isinstance(card, Card):
            raise OutputRefused(f"The gate {spec.name} returned {type(card).__name__}; a gate returns a Card or None.")
        asked = None if card is None else preconditions.with_observations(slice, spec, _asked(spec, card), seen or {})
        going = reapproval.passed(slice, spec, asked, returned.took)
        if going is not None:
            return going
        if asked is None:
            _may_pass(slice, spec)
            return slice.executed(spec, {}, spec.on_skip or None, took=returned.took, notes=returned.notes)
        _open(slice, spec, asked)
    except (Fenced, AskedTooOften):
        raise
    except execute.RAISED as error:
        return execute.failed(slice, spec, error)
    return False


def at_head(slice: RunSession) -> Gate | None:
    """Return the gate of the head's checkpoint, with its outcome where it has one."""
    found = Gate.objects.select_related("outcome").filter(run_id=slice.run.pk, checkpoint=slice.snapshot.id)
    return next(iter(found), None)


def wait_for(slice: RunSession, gate: Gate) -> bool:
    """Wait again for the gate at the head, which is still open. False where it was closed meanwhile.

    The gate's row is locked, so that a decision cannot close it between the look and the release: its wake-up
    would find a running run, and nobody would wake the run again.
    """
    with transaction.atomic():
        if not Gate.objects.select_for_update().filter(pk=gate.pk, status=Gate.Status.OPEN).exists():
            return False
        claims.release(slice.claim, status="waiting", by=slice.by)
    return True


def _open(slice: RunSession, spec: StepSpec, card: Card) -> None:
    slice.check()
    before = _asked_before(slice, spec) if slice.path.head.kind == "reopen" else None
    if before is not None:
        failed = _failed(slice)
        told = {**_changed(slice, before, card), **({"failed": failed} if failed else {})}
        reasons = [
            *card.reasons,
            *([f"{slice.plan.title_of(slice.path.head.step)} failed: {failed}"] if failed else []),
        ]
        card = replace(reopen.carried_over(slice, spec, card, before.outcome), reopened=told, reasons=reasons)
    crash_points.point("before_gate", spec.name)
    open_gate(
        claim=slice.claim,
        run=slice.run,
        snapshot=slice.snapshot,
        step=spec,
        policy=spec.policy,
        card=card,
        by=slice.by,
        asked_by=slice.for_whom,
    )
    crash_points.point("after_gate", spec.name)


def _asked(spec: StepSpec, card: Card) -> Card:
    """Return the card, with an action for each field that may be edited where the agent named none."""
    if card.actions or card.question:
        return card
    effects = [*spec.allows, *[""] * len(spec.edits)]
    actions = [
        Action(id=name, title=name, effect=effect, pointer=f"/{name}")
        for name, effect in zip(spec.edits, effects, strict=False)
    ]
    return replace(card, actions=actions)


def _may_pass(slice: RunSession, spec: StepSpec) -> None:
    """Raise StepFailed where this gate was reopened for a permission: passing it would go round for ever."""
    if slice.path.head.kind == "reopen":
        needs = slice.path.head.step
        raise StepFailed(f"{needs} needs a permission that the gate {spec.name} gives, yet it asked nothing.")


def _asked_before(slice: RunSession, spec: StepSpec) -> Gate | None:
    """Return the gate at which people last decided on this path."""
    asked = Gate.objects.filter(run_id=slice.run.pk, step=spec.name, checkpoint__in=slice.path.settled())
    return asked.select_related("outcome__proposal", "run__plan").order_by("-pk").first()


def _failed(slice: RunSession) -> str:
    """Say why the effect failed for whose sake the gate is opened again; empty where it did not."""
    tried = Effect.objects.filter(run_id=slice.run.pk, step=slice.path.head.step, undoes=None).order_by("-pk").first()
    return tried.error if tried is not None and tried.status == Effect.Status.FAILED else ""


def _changed(slice: RunSession, gate: Gate, card: Card) -> dict[str, Any]:
    """Return what changed since this gate's last approval, where an effect was refused for it: in the run, and outside.

    The world is compared with what `card` observes now: it may have changed once more since the effect was refused.
    """
    effect = slice.path.head.step
    world_rows = preconditions.changed_since(slice, gate.outcome.approved(), effect, card)
    return {"gate": gate.pk, "changes": [*changes_since(slice, gate, effect), *world_rows]}


def changes_since(slice: RunSession, gate: Gate, effect: str) -> list[binding.Row]:
    """List, as rows, what `gate` approved for `effect` and is different now."""
    approved = gate.outcome.approved()
    try:
        before = store.load_checkpoint(gate.checkpoint).state
        rows = binding.differences(approved, approved_state=before, **world(slice, slice.plan.step(effect)))
    except NoSuchCheckpoint:  # removed by retention: nothing is left to compare with
        rows = []
    state, told = slice.snapshot.state, {row["pointer"] for row in rows}
    for name, was in allowing_gate.changed_by_hand(slice, slice.plan.step(effect), gate.outcome).items():
        now = {name: state[name]} if name in state else {}
        rows += [row for row in binding.rows_between(was, now, of="state") if row["pointer"] not in told]
    return edit_state.hidden(rows, gate.standing().card, fields.veil(slice.agent.State))


def world(slice: RunSession, effect: StepSpec) -> dict[str, Any]:
    """Return what approvals.cards.binding reads to say what would run now."""
    return {
        "effect": effect.name,
        "action": allowing_gate.acting(slice, effect),
        "run": slice.run.pk,
        "agent": slice.plan.agent,
        "version": slice.plan.version,
        "plan": bytes(slice.run.plan.digest).hex(),
        "state": slice.snapshot.state,
        "fields": slice.snapshot.fields,
    }
