"""Ends a gate: writes its outcome and grants, frees the hold and wakes the run, in one transaction.

Also here: the digests by which what a grant lets run is found again, see approvals.consequences.done_before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from approvals.audit import evidence
from approvals.cards import answer as answering
from approvals.cards import binding, precondition
from approvals.cards.likeness import Likeness, likeness_of, tools_digest
from approvals.consequences.done_before import LATELY
from approvals.consequences.gate import GateImpacts
from approvals.models import Decision, Gate, Grant, Outcome, OwedSample, Policy, Proposal, Unrun, versions
from approvals.models.assignments import claim
from approvals.policy import authority, required
from approvals.webhooks import outbox
from checkpoints.actors import SYSTEM, Actor
from checkpoints.events import event_log
from checkpoints.models import Hold
from checkpoints.postgresql.prepared_rows import build_insertion, insert_rows
from checkpoints.runs.plans import spec_of
from checkpoints.values import patch
from checkpoints.values.canonical_json import encode_canonical
from checkpoints.values.digests import of_field

from .reading import read

PORTION = 500


def of_grant(outcome: Outcome, action: str, effect: str) -> Likeness:
    """Return the digests of what a grant of this outcome lets run: an action of its card, or another effect of it."""
    card = outcome.proposal.card
    performed = card.action(action) if action else None
    own = performed if performed and performed.effect in ("", effect) else None  # not another effect of its action
    return likeness_of(outcome.gate.team_id, own, card.resource)


def fill_in() -> int:
    """Give grants that the release before wrote their digests, as far back as they count; return how many were read.

    In portions with transactions of their own. What has none is read again each time.
    """
    lately = Grant.objects.filter(same_arguments="", same_key="", same_resource="")
    lately = lately.filter(outcome__created_at__gt=Now() - LATELY).select_related("outcome__gate", "outcome__proposal")
    read, last = 0, 0
    while True:
        with transaction.atomic():
            found = list(lately.filter(pk__gt=last).order_by("pk")[:PORTION])
            for grant in found:
                alike = of_grant(grant.outcome, grant.action, grant.effect)
                grant.same_arguments, grant.same_key, grant.same_resource = alike
            Grant.objects.bulk_update(found, ["same_arguments", "same_key", "same_resource"])
        if not found:
            return read
        read, last = read + len(found), found[-1].pk


Kind = Outcome.Kind


@dataclass(frozen=True, kw_only=True)
class GateEnd:
    """The end of a gate: its kind, its author, and the decisions that counted."""

    kind: Outcome.Kind
    by: Actor
    decisions: Sequence[Decision] = ()  # those that counted, oldest first: the rejections, or all approvals
    reason: str = ""  # where nobody decided
    added: Sequence[str] = ()  # ids of preconditions that the deadline adds to the required ones
    then: str = ""  # where nobody decided: what becomes of the run, "stop" or "rollback"; "": as the agent has it


def agreed_kind(standing: Proposal) -> Outcome.Kind:
    """Return the kind of outcome that approval of this proposal gives."""
    if standing.content["answer"] is not None:
        return Kind.ANSWERED
    if standing.card.settled:
        return Kind.MIXED
    return Kind.EDITED if standing.state_patch else Kind.APPROVED


def close(
    gate: Gate,
    standing: Proposal,
    end: GateEnd,
    *,
    status: Gate.Status = Gate.Status.DECIDED,
    told: Sequence[event_log.Entry] = (),
) -> Outcome:
    """End a gate that `move` has locked in this transaction. `told`: events to write before the end's own."""
    if not gate.move(status=status):
        raise AssertionError(f"{gate} was locked and is not open")
    outcome, grants = _outcome(gate, standing, end)
    counted = [Outcome.decisions.through(outcome=outcome, decision=decision) for decision in end.decisions]
    freed = Hold.objects.freeing(run=gate.run_id, subject=gate.subject, by=end.by)
    ended = gate.entry(f"gate.{_EVENT[status]}", by=end.by, data=_facts(outcome, end, grants))
    waits = [Unrun(gate=gate, due_at=_by(gate, outcome))] if outcome.lets_run else []
    owed = []
    if status != Gate.Status.DECIDED and required.of(standing, gate.policy).sampled:
        owed = [_owed(gate)]
    beside = [
        *build_insertion(counted),
        *build_insertion(grants),
        *build_insertion(waits),
        *build_insertion(owed),
        freed,
    ]
    beside += claim.with_gate(gate.pk)
    event_log.append_events([*told, ended], extras=beside)
    outbox.tell(gate, f"gate.{_EVENT[status]}", at=gate.closed_at or outcome.created_at, ended=end.kind)
    gate.run.wake(end.by)
    return outcome


def _owed(gate: Gate) -> OwedSample:
    agent, tools = gate.run.plan.agent, tools_digest(gate.asked)
    return OwedSample(gate=gate, team_id=gate.team_id, policy=gate.policy.name, agent=agent, tools=tools)


def _by(gate: Gate, outcome: Outcome) -> datetime:
    """Return by when something that the outcome lets run is to have begun."""
    return (gate.closed_at or outcome.created_at) + timedelta(seconds=settings.HOLDPOINT_NOT_RUN_AFTER)


def _facts(outcome: Outcome, end: GateEnd, grants: Sequence[Grant]) -> dict[str, Any]:
    """Build the data of the end's event, with verdicts by action where they differ."""
    verdicts = {"verdicts": outcome.by_action} if end.kind == Kind.MIXED else {}
    return {"kind": end.kind, **verdicts, **evidence.ended(outcome.gate, outcome, end.decisions, grants)}


_EVENT = {Gate.Status.DECIDED: "closed", Gate.Status.EXPIRED: "expired", Gate.Status.WITHDRAWN: "withdrawn"}


def expire(gate: Gate, *, by: Actor = SYSTEM) -> Outcome | None:
    """Close an open gate past its deadline; None where it is closed or not due.

    A deadline never approves repeated effects: nobody is there to confirm them.
    """
    with transaction.atomic():
        reading = read(gate.pk)
        gate, sound = reading.gate, evidence.vouch(reading.proposal)
        if not gate.move(due=True):
            return None
        standing = gate.standing()
        approves = sound and deadline_approves(gate, standing)
        if approves and reading.acted:
            approves = not GateImpacts(gate, standing.card, standing.state_patch).approve().repeats
        kind = agreed_kind(standing) if approves else Kind.EXPIRED
        added = _added(gate, standing) if approves else ()
        end = GateEnd(kind=kind, by=by, added=added, then="" if approves else deadline_stops(gate, standing))
        return close(gate, standing, end, status=Gate.Status.EXPIRED)


def approve(gate: Gate, standing: Proposal, *, by: Actor) -> Outcome:
    """Approve a gate that `move` has locked without anybody's vote, with the preconditions that are preselected."""
    return close(gate, standing, GateEnd(kind=agreed_kind(standing), by=by, added=_added(gate, standing)))


def pass_deadline(gate: Gate) -> None:
    """Set an open gate's deadline to a second ago, with its event; for trials of agents."""
    with transaction.atomic():
        reading = read(gate.pk)
        evidence.check(reading.proposal)
        gate.move()
        gate.alter(deadline=Now() - timedelta(seconds=1))
        reading.gate.refresh_from_db(fields=["deadline", "version"])
        reading.gate.say("gate.rescheduled", by=SYSTEM, data=evidence.opened(reading.gate, reading.proposal))


def deadline_approves(gate: Gate, standing: Proposal) -> bool:
    """Tell whether the deadline approves the current proposal, where too few people approve in time.

    Only where the policy or its rule says so in that word, and the newest version says the same of both; only the
    agent's own first proposal, since people's changes need people's approval; never a question, nor a proposal that
    lacks a value or takes no approval, that somebody ever rejected, or of which a rule could not be evaluated.
    """
    needs = required.of(standing, gate.policy)
    approves = needs.on_expiry == Policy.OnExpiry.APPROVE and standing.number == 1 and not needs.unclear
    if not approves:
        return False
    if gate.decisions.filter(verdict__in=Decision.REJECTING).exists():
        return False
    if standing.card.question is not None or standing.card.unfilled(gate.asked):
        return False
    if standing.card.untaken(gate.asked):
        return False
    newest = versions.newest(gate.policy)
    return (newest.on_expiry, newest.rules) == (gate.policy.on_expiry, gate.policy.rules)


def deadline_stops(gate: Gate, standing: Proposal) -> str:
    """Return "stop" or "rollback" where the deadline of a review does that to the run; "" where it expires.

    The sweeper asks the next group of an escalation before it calls `expire`; without one the gate expires.
    """
    said = required.of(standing, gate.policy).on_expiry if gate.kind == Gate.Kind.REVIEW else ""
    return said if said in (Policy.OnExpiry.STOP, Policy.OnExpiry.ROLLBACK) else ""


def withdraw(gate: Gate, *, by: Actor, reason: str) -> Outcome | None:
    """Close an open gate that needs no answer any more; None where it is closed."""
    with transaction.atomic():
        reading = read(gate.pk)
        gate = reading.gate
        evidence.vouch(reading.proposal)
        if not gate.move():
            return None
        end = GateEnd(kind=Kind.WITHDRAWN, by=by, reason=reason)
        return close(gate, gate.standing(), end, status=Gate.Status.WITHDRAWN)


def _added(gate: Gate, standing: Proposal) -> list[str]:
    """List the preconditions added where the deadline approved: preselected, or by approvers who may still decide.

    A deadline drops no precondition.
    """
    offered = standing.card.preconditions
    if not offered:
        return []
    agreed = list(standing.decisions.filter(counts=True))
    ended = authority.lapsed(agreed, gate)
    said = [each for decision in agreed if decision.user_id not in ended for each in decision.added]
    return precondition.agreed_to(offered, added=said, dropped=())


def _outcome(gate: Gate, standing: Proposal, end: GateEnd) -> tuple[Outcome, list[Grant]]:
    """Write the outcome; return it with its grants, which are not written yet."""
    rights = _rights(standing, end.kind)
    agreed = end.kind in (Kind.APPROVED, Kind.EDITED, Kind.MIXED, Kind.ANSWERED)
    state_patch = standing.state_patch if agreed else []
    bound = _bound(gate, [effect for _, effect in rights], state_patch) if agreed else {}
    arguments = {action.id: action.arguments for action in standing.card.actions} if agreed else {}
    added = [*end.added, *(each for decision in end.decisions for each in decision.added)]
    conditions = precondition.counted(standing.card.preconditions, added) if rights else []
    feedback = end.reason or "\n\n".join(decision.words for decision in end.decisions if decision.words)
    outcome = Outcome(
        gate=gate,
        proposal=standing,
        kind=end.kind,
        arguments=encode_canonical(arguments),
        patch=encode_canonical(state_patch),
        # Of several rejections the last one's: its sender was shown that this would happen.
        then=end.decisions[-1].then if end.decisions else end.then,
        back_to=end.decisions[-1].back_to if end.decisions else "",
        answer=encode_canonical(standing.content["answer"] if agreed else None),
        feedback=feedback.encode(errors="replace"),
        seen=bytes(standing.digest),
        bound=encode_canonical(bound),
        preconditions=encode_canonical(conditions),
        by=end.by.id,
        by_name=end.by.name,
    )
    outcome.to_run = outcome.approved().digest() if rights else None
    insert_rows([outcome])
    return outcome, [_grant(outcome, action, effect) for action, effect in rights]


def _grant(outcome: Outcome, action: str, effect: str) -> Grant:
    """Build a grant with the digests by which what it lets run is found again."""
    alike = of_grant(outcome, action, effect)
    return Grant(
        outcome=outcome, action=action, effect=effect, same_arguments=alike.arguments, same_key=alike.key,
        same_resource=alike.resource,
    )  # fmt: skip


def _rights(standing: Proposal, kind: Outcome.Kind) -> list[tuple[str, str]]:
    """Return (action, effect) for every grant that this end gives."""
    card = standing.card
    answer = standing.content["answer"]
    if kind in (Kind.APPROVED, Kind.EDITED, Kind.MIXED) or (kind == Kind.ANSWERED and answering.grants(card, answer)):
        return binding.pairs(card.actions, card.allows)
    return []


def _bound(gate: Gate, effects: Sequence[str], state_patch: list[dict[str, Any]]) -> binding.Bound:
    """Return the digests of the fields that the effects will read, with the edit in the state."""
    if not effects:
        return {}
    saved = gate.saved
    state = patch.apply(state_patch, saved.state) if state_patch else saved.state
    changed = {name for name in {**saved.state, **state} if saved.state.get(name) is not state.get(name)}
    fields = {
        name: of_field(state[name], saved.list_format) if name in changed else saved.fields[name] for name in state
    }
    plan = spec_of(gate.run.plan)
    return binding.bound_fields(plan, gate_step=gate.step, effects=effects, fields=fields)
