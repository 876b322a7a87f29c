"""Ends a gate at the end of its undo window, where what was decided still holds.

All that closing a gate checks is checked once more: the rows against their events, who may still decide, and that it
would do no more than its people were shown. Where it would, their votes count no more and the gate stays open.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.db.models import Q

from approvals.audit import evidence
from approvals.consequences import impact_sources
from approvals.consequences.gate import GateImpacts
from approvals.decisions import quorum
from approvals.decisions.decision_impact import DecisionImpact
from approvals.decisions.submission import Verdict
from approvals.errors import DecisionRefused
from approvals.gates import closing, settling
from approvals.gates.reading import GateReading, read
from approvals.models import Decision, Gate, Outcome
from approvals.policy import required
from checkpoints import crash_points
from checkpoints.events import event_log


def settle(gate: Gate) -> bool:
    """End an open gate whose undo window has passed; False where it has not, or it changed just now.

    True also where the decision no longer holds, and the gate stays open without it. Raises NotVerified.
    """
    with transaction.atomic():
        reading = read(gate.pk)
        gate, standing = reading.gate, reading.proposal
        evidence.check(standing)
        votes = counting(gate)
        # Before the lock, which must not wait for an agent's code.
        stamp, ahead = impact_sources.stamp_of(gate.run), _ahead(reading, votes)
        crash_points.point("before_settled", gate.step)
        if not gate.move(settled=gate.version):
            return False
        evidence.check_voices(gate, votes)
        if ahead and impact_sources.stamp_of(gate.run) != stamp:
            ahead = _ahead(reading, votes)
        if ahead and _does_more(ahead, votes, gate):
            told = [quorum.lapse(gate, standing, [vote.user_id for vote in votes])]
            event_log.append_events([*told, settling.reconsidered(gate, standing)])
            return True
        end, events = quorum.ending(gate, standing, required.of(standing, gate.policy), votes)
        if end is None:
            event_log.append_events([*events, settling.reconsidered(gate, standing)])
        else:
            closing.close(gate, standing, end, told=events)
        crash_points.point("after_settled", gate.step)
    return True


def counting(gate: Gate) -> list[Decision]:
    """List the votes that count: for the gate's current proposal, and all rejections; oldest first."""
    current = Q(proposal__number=gate.proposal) | Q(verdict=Verdict.REJECT)
    votes = gate.decisions.filter(current, counts=True)
    return list(votes.select_related("user").order_by("pk"))


def _deciding(gate: Gate, votes: Sequence[Decision]) -> Decision:
    """Return the last vote of the kind that ends the gate."""
    rejected = gate.settles_as == Outcome.Kind.REJECTED
    return next((vote for vote in reversed(votes) if vote.rejects == rejected), votes[-1])


def _ahead(reading: GateReading, votes: Sequence[Decision]) -> DecisionImpact | None:
    """Return what the decision would do now; None where nobody was shown anything, and nothing can be repeated."""
    gate, standing = reading.gate, reading.proposal
    if not votes or not (_deciding(gate, votes).shown or reading.acted):
        return None
    vote = _deciding(gate, votes)
    future = GateImpacts(gate, standing.card, standing.state_patch)
    if vote.rejects:
        return DecisionImpact(impact=future.back(vote.back_to) if vote.back_to else future.stop(), rejects=True)
    if standing.card.question is not None:
        return DecisionImpact(impact=future.answering(str((standing.content["answer"] or {}).get("choice", ""))))
    return DecisionImpact(impact=future.approve())


def _does_more(ahead: DecisionImpact, votes: Sequence[Decision], gate: Gate) -> bool:
    """Tell whether it would do more than was shown, or repeat an effect that not all of them confirmed."""
    vote = _deciding(gate, votes)
    voters = [vote] if ahead.rejects else [each for each in votes if not each.rejects]
    try:
        ahead.check_confirmed(set.intersection(*(each.confirmed for each in voters)), run=gate.run_id)
        ahead.check_shown(vote.shown)
    except DecisionRefused:
        return True
    return False
