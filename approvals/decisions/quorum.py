"""Counts a gate's votes, and closes the gate once enough people agree on one proposal.

The caller holds the gate's lock. Each person has one vote for a proposal at most, which a constraint of the database
holds; votes for earlier proposals do not count.
"""

from __future__ import annotations

from collections.abc import Sequence

from approvals.audit import evidence
from approvals.gates import closing
from approvals.gates.closing import GateEnd
from approvals.models import Decision, Gate, Outcome, Proposal
from approvals.models.assignments import ending
from approvals.policy import authority
from approvals.policy.step_up import PasswordConfirmed
from checkpoints import actors
from checkpoints.events import event_log

from .prepared_decision import PreparedDecision
from .submission import Verdict


def close_when_due(prepared: PreparedDecision, votes: Sequence[Decision], confirmed: PasswordConfirmed | None) -> None:
    """Record the last of these votes as an event, and close the gate where they are enough or it rejects."""
    gate, submission, decision = prepared.gate, prepared.submission, votes[-1]
    proposal, by = decision.proposal, actors.of_user(decision.user)
    optional = {
        "verdicts": decision.by_action if decision.verdict == Verdict.MIXED else {},
        "confirmed": confirmed.at.isoformat() if gate.policy.step_up and confirmed else "",
        "repeats": sorted(decision.confirmed),
        "dropped": sorted(set(submission.dropped)),
        "second_look": decision.second_look,
        "on_behalf_of": f"user:{decision.on_behalf_of_id}" if decision.on_behalf_of_id else "",
    }
    data = {
        "kind": decision.verdict,
        "proposal": proposal.number,
        "quorum": gate.policy.quorum,
        **{name: value for name, value in optional.items() if value},
        **evidence.decided(gate, proposal, decision),
    }
    events = [gate.entry("gate.decided", by=by, data=data, text=submission.comment)]
    if decision.verdict == Verdict.REJECT:
        closing.close(gate, proposal, GateEnd(kind=Outcome.Kind.REJECTED, by=by, decisions=[decision]), told=events)
        return
    lapsed = _lapsed(gate, votes)
    if lapsed:
        events.append(_lapse(gate, proposal, lapsed))
    agreed = [vote for vote in votes if vote.user_id not in lapsed]
    if len({vote.authority for vote in agreed}) < max(1, gate.policy.quorum):
        event_log.append(events, beside=ending.with_vote(gate.pk, by=decision.user_id))
        return
    closing.close(gate, proposal, GateEnd(kind=closing.agreed_kind(proposal), by=by, decisions=agreed), told=events)


def _lapsed(gate: Gate, votes: Sequence[Decision]) -> list[int]:
    """List the people whose votes for the current proposal no longer count, by their authority as it is now.

    Nor does a vote count that does not confirm every repeat that the last one confirms: its sender agreed to less.
    """
    ended = authority.lapsed(votes, gate)
    repeats = votes[-1].confirmed
    return [each.user_id for each in votes if each.user_id in ended or not repeats <= each.confirmed]


def _lapse(gate: Gate, proposal: Proposal, lapsed: Sequence[int]) -> event_log.Entry:
    """Drop the votes of people who may no longer decide; they can vote again if they may again."""
    proposal.decisions.filter(user__in=lapsed, counts=True).update(counts=False)
    users = [f"user:{user}" for user in lapsed]
    data = {"users": users, "proposal": proposal.number, **evidence.opened(gate, proposal)}
    return gate.entry("gate.lapsed", by=actors.SYSTEM, data=data)
