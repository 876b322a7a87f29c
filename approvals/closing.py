"""How a gate ends: its outcome, its grants, the hold freed and the run woken, in the transaction that ends it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from checkpoints import digests, ledger, patch
from checkpoints.actors import Actor
from checkpoints.models import Hold
from checkpoints.plans import spec_of
from checkpoints.values import canonical

from . import answering, binding, preconditions
from .consequences.gate import Foretold
from .models import Decision, Gate, Grant, Outcome, Policy, Proposal
from .reading import read
from .webhooks import outbox

Kind = Outcome.Kind


@dataclass(frozen=True, kw_only=True)
class End:
    """How a gate ends."""

    kind: Outcome.Kind
    by: Actor
    decisions: Sequence[Decision] = ()
    then: str = ""
    back_to: str = ""
    feedback: str = ""
    added: Sequence[str] = ()  # ids of preconditions that those who agreed added to the required ones


def agreed_kind(standing: Proposal) -> Outcome.Kind:
    """What agreement on this proposal means."""
    if standing.content["answer"] is not None:
        return Kind.ANSWERED
    if standing.card.settled:
        return Kind.MIXED
    return Kind.EDITED if standing.state_patch else Kind.APPROVED


def close(
    gate: Gate,
    standing: Proposal,
    end: End,
    *,
    status: Gate.Status = Gate.Status.DECIDED,
    told: Sequence[ledger.Entry] = (),
) -> Outcome:
    """End a gate that `move` has locked in this transaction. `told`: events that come before the ending's own."""
    if not gate.move(status=status):
        raise AssertionError(f"{gate} was locked and is not open")
    outcome = _outcome(gate, standing, end)
    Hold.objects.free(run=gate.run_id, subject=gate.subject, by=end.by)
    ledger.append([*told, gate.entry(f"gate.{_EVENT[status]}", by=end.by, data=_facts(outcome, end))])
    outbox.tell(gate, f"gate.{_EVENT[status]}", at=gate.closed_at or outcome.created_at, ended=end.kind)
    gate.run.wake(end.by)
    return outcome


def _facts(outcome: Outcome, end: End) -> dict[str, Any]:
    """What the event says of the end; by action where that is not the same for all."""
    return {"kind": end.kind, **({"verdicts": outcome.by_action} if end.kind == Kind.MIXED else {})}


_EVENT = {Gate.Status.DECIDED: "closed", Gate.Status.EXPIRED: "expired", Gate.Status.WITHDRAWN: "withdrawn"}


def expire(gate: Gate, *, by: Actor) -> Outcome | None:
    """Close an open gate past its deadline; None where it is not one.

    A deadline approves only where the policy says so in that word. It never answers a question, and never agrees to
    what lacks something, or to what was done before and would be done once more: nobody is there to confirm that.
    """
    with transaction.atomic():
        reading = read(gate.pk)
        gate = reading.gate
        if not gate.move(due=True):
            return None
        standing = gate.standing()
        approves = gate.policy.on_expiry == Policy.OnExpiry.APPROVE and standing.card.question is None
        approves = approves and not standing.card.unfilled(gate.asked)
        if approves and reading.acted:
            approves = not Foretold(gate, standing.card, standing.state_patch).approve().repeats
        kind = agreed_kind(standing) if approves else Kind.EXPIRED
        end = End(kind=kind, by=by, added=_added(standing) if approves else ())
        return close(gate, standing, end, status=Gate.Status.EXPIRED)


def withdraw(gate: Gate, *, by: Actor, reason: str) -> Outcome | None:
    """Close an open gate that needs no answer any more; None where it is not open."""
    with transaction.atomic():
        gate = read(gate.pk).gate
        if not gate.move():
            return None
        end = End(kind=Kind.WITHDRAWN, by=by, feedback=reason)
        return close(gate, gate.standing(), end, status=Gate.Status.WITHDRAWN)


def _added(standing: Proposal) -> list[str]:
    """What people added who agreed in time, where the deadline then approved: their word was too few, not untrue."""
    if not standing.card.preconditions:
        return []
    return [each for decision in standing.decisions.filter(counts=True) for each in decision.added]


def _outcome(gate: Gate, standing: Proposal, end: End) -> Outcome:
    body = standing.content
    rights = _rights(standing, end.kind)
    agreed = end.kind in (Kind.APPROVED, Kind.EDITED, Kind.MIXED, Kind.ANSWERED)
    state_patch = standing.state_patch if agreed else []
    bound = _bound(gate, [effect for _, effect in rights], state_patch) if agreed else {}
    arguments = {action.id: action.arguments for action in standing.card.actions} if agreed else {}
    conditions = preconditions.counted(standing.card.preconditions, end.added) if rights else []
    approved = binding.Approved.of(body, gate=gate.pk, bound=bound, arguments=arguments, preconditions=conditions)
    outcome = Outcome.objects.create(
        gate=gate,
        proposal=standing,
        kind=end.kind,
        arguments=canonical(arguments),
        patch=canonical(state_patch),
        then=end.then,
        back_to=end.back_to,
        answer=canonical(body["answer"] if agreed else None),
        feedback=end.feedback.encode(errors="replace"),
        seen=bytes(standing.digest),
        to_run=approved.digest() if rights else None,
        bound=canonical(bound),
        preconditions=canonical(conditions),
        by=end.by.id,
        by_name=end.by.name,
    )
    through = Outcome.decisions.through
    through.objects.bulk_create(through(outcome=outcome, decision=decision) for decision in end.decisions)
    Grant.objects.bulk_create(Grant(outcome=outcome, action=action, effect=effect) for action, effect in rights)
    return outcome


def _rights(standing: Proposal, kind: Outcome.Kind) -> list[tuple[str, str]]:
    """(action, effect) for every grant that this end gives."""
    card = standing.card
    answer = standing.content["answer"]
    if kind in (Kind.APPROVED, Kind.EDITED, Kind.MIXED) or (kind == Kind.ANSWERED and answering.grants(card, answer)):
        return binding.pairs(card.actions, card.allows)
    return []


def _bound(gate: Gate, effects: Sequence[str], state_patch: list[dict[str, Any]]) -> binding.Bound:
    """The digests of what the effects will read, as it will be once the edit is in the state."""
    if not effects:
        return {}
    saved = gate.saved
    state = patch.apply(state_patch, saved.state) if state_patch else saved.state
    changed = {name for name in {**saved.state, **state} if saved.state.get(name) is not state.get(name)}
    fields = {name: digests.of_field(state[name]) if name in changed else saved.fields[name] for name in state}
    plan = spec_of(gate.run.plan)
    return binding.bound_fields(plan, gate_step=gate.step, effects=effects, fields=fields)
