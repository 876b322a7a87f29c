"""A gate step: ask people, and let go of the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from agents.definition.plan_builder import OBSERVED
from agents.errors import OutputRefused, StepFailed
from agents.models import Effect
from agents.session import allowing_gate, gates_beside
from agents.session.run_session import RunSession
from agents.steps import execute
from approvals.audit import evidence
from approvals.cards import binding
from approvals.cards.action import Action
from approvals.cards.card import Card, state_veil
from approvals.decisions import edit_state
from approvals.errors import AskedTooOften
from approvals.gates.opening import open_gate
from approvals.models import Gate
from checkpoints import crash_points, store
from checkpoints.errors import Fenced, NoSuchCheckpoint
from checkpoints.postgresql.prepared_rows import prepared_statement
from checkpoints.runs.plans import StepSpec
from checkpoints.store import claims

from . import preconditions, reapproval, reopen


def ask(session: RunSession, spec: StepSpec) -> bool:
    """Run the gate's method and open its gate; without a card the run goes on. True if the session goes on.

    Raises AskedTooOften, which is no failed attempt.
    """
    crash_points.point("before_step", spec.name)
    try:
        seen = preconditions.first_looks(session, spec)
        returned = session.performer.step(session, spec, **({} if seen is None else {OBSERVED: seen}))
        if returned is None:
            return False
        crash_points.point("after_step", spec.name, returned.value)
        card = returned.value
        if card is None and spec.asks:
            raise OutputRefused(f"The gate {spec.name} says `-> Card` and asked nothing; say `-> Card | None`.")
        if card is not None and not isinstance(card, Card):
            raise OutputRefused(f"The gate {spec.name} returned {type(card).__name__}; a gate returns a Card or None.")
        asked = None if card is None else preconditions.with_observations(session, spec, _asked(spec, card), seen or {})
        going = reapproval.passed(session, spec, asked, returned.took)
        if going is not None:
            return going
        if asked is None:
            _may_pass(session, spec)
            return session.executed(spec, {}, spec.on_skip or None, took=returned.took, notes=returned.notes)
        return _open(session, spec, asked, returned.took)
    except (Fenced, AskedTooOften):
        raise
    except execute.RAISED as error:
        return execute.failed(session, spec, error)


def at_head(session: RunSession) -> Gate | None:
    """Return the gate of the head's checkpoint, with its outcome and the evidence of it where it has one."""
    return next(iter(_gate_at(session.run.pk, session.snapshot.id)), None)


@prepared_statement
def _gate_at(run: Any, checkpoint: Any) -> QuerySet[Gate]:
    gates = Gate.objects.select_related("outcome__proposal").filter(run_id=run, checkpoint=checkpoint)
    return evidence.with_end(gates)


def wait_for(session: RunSession, gates: Sequence[Gate], reason: str = "") -> bool:
    """Wait for gates that are still open. False where one of them was closed meanwhile.

    Their rows are locked, so that a decision cannot close one between the look and the release: its wake-up
    would find a running run, and nobody would wake the run again.
    """
    session.flush()
    crash_points.point("before_held", session.snapshot.next_step)
    with transaction.atomic():
        still = Gate.objects.open().filter(pk__in=[gate.pk for gate in gates]).select_for_update().order_by("pk")
        if len(still) < len(gates):
            return False
        claims.release(session.claim, status="waiting", reason=reason, by=session.by)
        crash_points.point("after_held", session.snapshot.next_step)
    return True


def _open(session: RunSession, spec: StepSpec, card: Card, took: float) -> bool:
    """Open the gate; True if the run goes on meanwhile. A gate that was reopened for an effect holds the run."""
    session.check()
    waits = spec.waits or session.path.head.kind == "reopen"
    before = _asked_before(session, spec) if session.path.head.kind == "reopen" else None
    if before is not None:
        failed = _failed(session)
        values = {**_changed(session, before, card), **({"failed": failed} if failed else {})}
        reasons = [
            *card.reasons,
            *([f"{session.plan.title_of(session.path.head.step)} failed: {failed}"] if failed else []),
        ]
        card = replace(reopen.carried_over(session, spec, card, before.outcome), reopened=values, reasons=reasons)
    crash_points.point("before_gate", spec.name)
    going = False
    falling_asleep = gates_beside.falling_asleep(session.run, session.asking)
    with falling_asleep if waits else transaction.atomic():
        open_gate(
            claim=session.claim, run=session.run, snapshot=session.snapshot, step=spec, policy=spec.policy, card=card,
            by=session.by, asked_by=session.for_whom, waits=waits,
        )  # fmt: skip
        if not waits:
            going = session.save("asked", spec, {}, session.plan.next_after(spec.name), took=took)
    crash_points.point("after_gate", spec.name)
    return going


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


def _may_pass(session: RunSession, spec: StepSpec) -> None:
    """Raise StepFailed where this gate was reopened for a permission: passing it would go round for ever."""
    if session.path.head.kind == "reopen":
        needs = session.path.head.step
        raise StepFailed(f"{needs} needs a permission that the gate {spec.name} gives, yet it asked nothing.")


def _asked_before(session: RunSession, spec: StepSpec) -> Gate | None:
    """Return the gate at which people last decided on this path."""
    asked = Gate.objects.filter(run_id=session.run.pk, step=spec.name, checkpoint__in=session.path.settled())
    return asked.select_related("outcome__proposal", "run__plan").order_by("-pk").first()


def _failed(session: RunSession) -> str:
    """Say why the effect failed for whose sake the gate is opened again; empty where it did not."""
    tried = (
        Effect.objects.filter(run_id=session.run.pk, step=session.path.head.step, undoes=None).order_by("-pk").first()
    )
    return tried.error if tried is not None and tried.status == Effect.Status.FAILED else ""


def _changed(session: RunSession, gate: Gate, card: Card) -> dict[str, Any]:
    """Return what changed since this gate's last approval, where an effect was refused for it: in the run, and outside.

    The world is compared with what `card` observes now: it may have changed once more since the effect was refused.
    """
    effect = session.path.head.step
    world_rows = preconditions.changed_since(session, gate.outcome.approved(), effect, card)
    return {"gate": gate.pk, "changes": [*changes_since(session, gate, effect), *world_rows]}


def changes_since(session: RunSession, gate: Gate, effect: str) -> list[binding.Row]:
    """List, as rows, what `gate` approved for `effect` and is different now."""
    approved = gate.outcome.approved()
    try:
        before = store.load_checkpoint(gate.checkpoint).state
        rows = binding.differences(approved, approved_state=before, **world(session, session.plan.step(effect)))
    except NoSuchCheckpoint:  # removed by retention: nothing is left to compare with
        rows = []
    state, names = session.snapshot.state, {row["pointer"] for row in rows}
    for name, was in allowing_gate.changed_by_hand(session, session.plan.step(effect), gate.outcome).items():
        now = {name: state[name]} if name in state else {}
        rows += [row for row in binding.rows_between(was, now, of="state") if row["pointer"] not in names]
    card = gate.standing().card
    return edit_state.hidden(rows, card, state_veil(session.plan, card))


def world(session: RunSession, effect: StepSpec) -> dict[str, Any]:
    """Return what approvals.cards.binding reads to say what would run now."""
    return {
        "effect": effect.name,
        "action": allowing_gate.acting(session, effect),
        "run": session.run.pk,
        "agent": session.plan.agent,
        "version": session.plan.version,
        "plan": bytes(session.run.plan.digest).hex(),
        "state": session.snapshot.state,
        "fields": session.snapshot.fields,
    }
