"""Counts a gate's votes, and closes the gate once a proposal is approved or rejected.

The caller holds the gate's lock. Each person has one vote for a proposal at most, which a constraint of the database
holds; approvals of earlier proposals do not count. Rejections count at the gate until their authors decide otherwise,
so that an edit does not wash them away. approvals.policy.tally says what the votes come to.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import transaction

from approvals.audit import evidence
from approvals.consequences.errors import RejectionStands
from approvals.errors import NotAllowed
from approvals.gates import closing, settling
from approvals.gates.closing import GateEnd
from approvals.models import Decision, Gate, Outcome, Proposal
from approvals.models.assignments import ending as assignments_ending
from approvals.policy import authority, required, step_up, tally
from approvals.policy.requirements import Requirements
from approvals.policy.rules import stage_words
from approvals.policy.step_up import Confirmed
from approvals.policy.tally import CountedVote, Tally
from checkpoints import actors
from checkpoints.events import event_log

from .prepared_decision import PreparedDecision
from .submission import Verdict


@dataclass(frozen=True, kw_only=True)
class CountedVotes:
    """The votes at a gate by their senders' authority as it is now."""

    tally: Tally
    votes: Sequence[Decision]  # those that count
    lapsed: Sequence[int] = ()  # the people whose votes no longer count


def counted(gate: Gate, needs: Requirements, votes: Sequence[Decision], *, repeats: Iterable[int] = ()) -> CountedVotes:
    """Count these votes. An approval that confirms fewer `repeats` lapses: its sender agreed to less."""
    seats = authority.seats_of(votes, gate)
    agreed = {each.user_id for each in votes if each.rejects or set(repeats) <= each.confirmed}
    lapsed = [each.user_id for each in votes if seats[each.user_id].why_not or each.user_id not in agreed]
    kept = [each for each in votes if each.user_id not in lapsed]
    cast = [
        CountedVote(person=each.authority, approves=not each.rejects, teams=seats[each.user_id].teams) for each in kept
    ]
    return CountedVotes(tally=tally.tally(required.at(gate, needs), cast), votes=kept, lapsed=lapsed)


def check_turn(gate: Gate, needs: Requirements, votes: Sequence[Decision], *, by: int) -> None:
    """Raise NotAllowed where somebody is not asked, or not yet. No statement for plain policies."""
    if gate.policy.plain:
        return
    others = [each for each in votes if each.user_id != by]
    count, now = counted(gate, needs, others).tally, authority.standings([by], gate)[by]
    why_not, teams, person = authority.seat(by, now, gate, used={each.authority for each in others})
    if why_not := why_not or stage_words.why_not_now(count, person, teams, gate):
        raise NotAllowed(why_not)


def check_rejected(needs: Requirements, others: Sequence[Decision]) -> None:
    """Raise RejectionStands for an approval or an edit where the `others` that count close the gate as rejected."""
    rejecting = [each for each in others if each.rejects]
    if len({each.authority for each in rejecting}) >= needs.denials:
        raise RejectionStands(actors.of_user(rejecting[-1].user).name)


def left(
    gate: Gate,
    needs: Requirements,
    others: Sequence[Decision],
    *,
    by: int,
    behalf: int | None = None,
    rejecting: bool = False,
) -> int:
    """Return how many more people have to approve after somebody did; where they are `rejecting`, have to reject.

    `others`: the votes that count beside theirs; `behalf`: for whom they decide, where that is not themselves.
    """
    mine = behalf or by
    if rejecting:
        return max(needs.denials - len({each.authority for each in others if each.rejects} | {mine}), 0)
    approvals = [each for each in others if not each.rejects]
    if gate.policy.plain:
        return max(needs.slots - len({each.authority for each in approvals} | {mine}), 0)
    now, used = authority.standings([by], gate)[by], {each.authority for each in others}
    seats = [*authority.seats_of(approvals, gate).values(), authority.seat(by, now, gate, used=used)]
    votes = [CountedVote(person=seat.person, teams=seat.teams) for seat in seats if not seat.why_not]
    return tally.tally(required.at(gate, needs), votes).left


def close_when_due(prepared: PreparedDecision, votes: Sequence[Decision], confirmed: Confirmed | None) -> None:
    """Record the last of these votes as an event, and close the gate where they are enough to approve or reject."""
    gate, submission, decision, needs = prepared.gate, prepared.submission, votes[-1], prepared.will_need
    proposal, by, asked = decision.proposal, actors.of_user(decision.user), list(gate.awaits)
    end, lapsed = ending(gate, proposal, needs, votes)
    optional = {
        "verdicts": decision.by_action if decision.verdict == Verdict.MIXED else {},
        **(step_up.evidence(confirmed, gate.policy.step_up_method) if needs.step_up else {}),
        "repeats": sorted(decision.confirmed),
        "dropped": sorted(set(submission.dropped)),
        "second_look": decision.second_look,
        "denials": needs.denials if needs.denials > 1 else 0,
        "rules": list(needs.rules),
        "bulk": submission.bulk,
        "on_behalf_of": f"user:{decision.on_behalf_of_id}" if decision.on_behalf_of_id else "",
        "asks": end is None and gate.awaits != asked,
    }
    data = {
        "kind": decision.verdict,
        "proposal": proposal.number,
        "quorum": needs.slots,
        **{name: value for name, value in optional.items() if value},
        **evidence.decided(gate, proposal, decision),
    }
    told = gate.entry("gate.decided", by=by, data=data, text=submission.comment)
    claimed = assignments_ending.with_vote(gate.pk, by=decision.user_id)
    anew = proposal.number != prepared.proposal.number
    settling.end_or_wait(gate, proposal, end, told=[told, *lapsed], beside=claimed, anew=anew)


def ending(
    gate: Gate, proposal: Proposal, needs: Requirements, votes: Sequence[Decision]
) -> tuple[GateEnd | None, list[event_log.Entry]]:
    """Return how these votes end the gate, None where they do not, with the events of those that count no more.

    Oldest first; there may be none. Where they do not end it, the gate's row says whose approval is needed now.
    """
    rejecting = [vote for vote in reversed(votes) if vote.rejects]
    if rejecting and needs.denials == 1:
        by = actors.of_user(rejecting[0].user)
        return GateEnd(kind=Outcome.Kind.REJECTED, by=by, decisions=rejecting[:1]), []
    count = counted(gate, needs, votes, repeats=votes[-1].confirmed if votes else ())
    events = [lapse(gate, proposal, count.lapsed)] if count.lapsed else []
    if count.tally.status == tally.OPEN:
        ask_next(gate, count.tally)
        return None, events
    rejected = count.tally.status == tally.REJECTED
    counting = [vote for vote in count.votes if vote.rejects == rejected]
    kind = Outcome.Kind.REJECTED if rejected else closing.agreed_kind(proposal)
    return GateEnd(kind=kind, by=actors.of_user(counting[-1].user), decisions=counting), events


def ask_again(gate_id: int) -> None:
    """Note anew whose approval is needed, after a refusal: votes lapse when their senders lose their authority."""
    with transaction.atomic():
        gate = Gate.objects.select_for_update(of=("self",)).select_related("policy", "run").get(pk=gate_id)
        if gate.status != Gate.Status.OPEN or not gate.awaits:
            return
        votes = list(gate.decisions.filter(counts=True).order_by("pk"))
        count = counted(gate, required.of(gate.standing(), gate.policy), votes)
        ask_next(gate, count.tally)


def ask_next(gate: Gate, count: Tally) -> None:
    """Note on the gate's row, for the queues, whose approval is needed now. Needs its lock."""
    if not gate.policy.plain:
        gate.awaits = tally.asked_now(count)
        Gate.objects.filter(pk=gate.pk).update(awaits=gate.awaits)


def lapse(gate: Gate, proposal: Proposal, lapsed: Sequence[int]) -> event_log.Entry:
    """Drop the votes of people who may no longer decide; they can vote again if they may again."""
    gate.decisions.filter(user__in=lapsed, counts=True).update(counts=False)
    users = [f"user:{user}" for user in lapsed]
    data = {"users": users, "proposal": proposal.number, **evidence.opened(gate, proposal)}
    return gate.entry("gate.lapsed", by=actors.SYSTEM, data=data)
