"""Judges the votes at a gate as they stand, and writes what follows: the only place that does either.

What follows is whose approval is asked for, votes that lapse, an end that waits for its undo window, and the gate's
closing. The caller has moved the gate, and so holds its lock.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q

from approvals.audit import evidence
from approvals.consequences.errors import RejectionStands
from approvals.errors import AlreadySaid, NotAllowed, SaidInTheirName
from approvals.models import Decision, Gate, Outcome, Policy, Proposal
from approvals.policy import authority, required
from approvals.policy.authority import GateStanding, Seat
from approvals.policy.requirements import Requirements
from approvals.policy.rules import stage_words
from approvals.policy.tally import CountedVote, Tally, tally
from checkpoints import actors
from checkpoints.actors import SYSTEM
from checkpoints.events import event_log
from checkpoints.postgresql.sql import Statement

from . import closing
from .closing import GateEnd
from .judge import Approval, CastVote, End, Rejection, Verdict, VoteStanding, judge
from .reading import read


def counting(gate: Gate) -> list[Decision]:
    """List the votes that count: for the gate's current proposal, and all rejections; oldest first."""
    current = Q(proposal__number=gate.proposal) | Q(verdict__in=Decision.REJECTING)
    return list(gate.decisions.filter(current, counts=True).select_related("user").order_by("pk"))


def window_of(policy: Policy, needs: Requirements) -> timedelta | None:
    """Return how long a decision may be undone, where one approval closes; else the second person is the safety."""
    return policy.undo_window if needs.slots == 1 else None


def judged(
    gate: Gate,
    needs: Requirements,
    votes: Sequence[Decision],
    *,
    now: Mapping[int, GateStanding] | None = None,
    barred: Mapping[int, str] | None = None,
) -> Verdict:
    """Judge votes by their senders' authority as it is now, oldest first.

    `now`: how their senders stand to the gate, where the caller has read it; `barred`: why votes count no more for
    another reason, by the numbers of their decisions.
    """
    if now is None:
        now = authority.standings([each.user_id for each in votes], gate) if votes else {}
    seats = {each.pk: authority.seat_of(each, now[each.user_id], gate) for each in votes}
    standings = {
        pk: VoteStanding(why_not=(barred or {}).get(pk, seat.why_not), teams=seat.teams) for pk, seat in seats.items()
    }
    approvals = [Approval(**_cast(each)) for each in votes if each.approves]
    against = [Rejection(**_cast(each), then=each.then, back_to=each.back_to) for each in votes if each.rejects]
    return judge(required.at(gate, needs), gate.proposal, approvals, against, standings)


def _cast(vote: Decision) -> dict[str, Any]:
    said = {"decision": vote.pk, "person": vote.user_id, "authority": vote.authority}
    return said | {"repeats": frozenset(vote.confirmed)}


@dataclass(frozen=True, kw_only=True)
class PendingVote:
    """A person's vote before it is cast: by whose authority, and what the votes beside it come to."""

    gate: Gate
    by: int
    seat: Seat
    replaced: Sequence[Decision]  # votes that theirs takes the place of: their own, or by the same authority
    others: Sequence[Decision]  # the votes that count beside it
    verdict: Verdict  # of these
    lapsed: Collection[int]  # the numbers of the decisions whose senders may decide no more: they use and say nothing
    now: Mapping[int, GateStanding]

    @classmethod
    def of(cls, gate: Gate, needs: Requirements, votes: Sequence[Decision], *, by: int) -> PendingVote:
        """Read by whose authority somebody votes now, and judge the votes of the others; one statement or two."""
        now = authority.standings({by, *(each.user_id for each in votes)}, gate)
        lapsed = {each.pk for each in votes if authority.seat_of(each, now[each.user_id], gate).why_not}
        theirs = [each for each in votes if each.user_id != by]
        verdict = judged(gate, needs, theirs, now=now)
        used = {each.authority for each in theirs if each.pk not in lapsed}
        seat = authority.seat(now[by], gate, used=used, count=verdict.count)
        replaced = [each for each in votes if each.user_id == by or each.authority == seat.person]
        others = [each for each in theirs if each not in replaced]
        if len(others) < len(theirs):
            verdict = judged(gate, needs, others, now=now)
        return cls(
            gate=gate, by=by, seat=seat, replaced=replaced, others=others, verdict=verdict, lapsed=lapsed, now=now
        )  # fmt: skip

    @property
    def behalf(self) -> int | None:
        """Return for whom they decide, None for themselves."""
        return None if self.seat.person == self.by else self.seat.person

    def check(self, *, rejects: bool, anew: bool) -> None:
        """Refuse a vote that is not asked for, or says again what was said. `anew`: it makes a new proposal.

        Raises NotAllowed, AlreadySaid and RejectionStands. Whoever rejects or edits needs a role in a stage that is
        reached.
        """
        if self.seat.why_not:
            raise NotAllowed(self.seat.why_not)
        before = [] if anew else self.replaced
        again = [each for each in before if each.rejects == rejects and each.pk not in self.lapsed]
        if again and self.by not in [each.user_id for each in again]:
            raise SaidInTheirName(actors.of_user(again[0].user).name, rejects=rejects)
        if again:
            raise AlreadySaid(AlreadySaid.rejected if rejects else "")
        if not rejects and (end := self.verdict.end) and end.rejects:
            raise RejectionStands(actors.of_user(_last(end, self.others).user).name)
        if why := self.turn(approves=not (rejects or anew)):
            raise NotAllowed(why)

    def turn(self, *, approves: bool) -> str:
        """Say why it is not their turn, as a sentence; "" where it is."""
        count, person, teams = self.verdict.count, self.seat.person, self.seat.teams
        return stage_words.why_not_now(count, person, teams, self.gate, approves=approves)

    def after(self, needs: Requirements, *, anew: bool = False) -> Tally:
        """Count the approvals as if they approved; `anew`: a new proposal, which needs these."""
        kept = [] if anew else [*self.verdict.count.votes.values()]
        mine = CountedVote(person=self.seat.person, teams=self.seat.teams)
        return tally(required.at(self.gate, needs), [*kept, mine])


def project(
    gate: Gate,
    standing: Proposal,
    needs: Requirements,
    votes: Sequence[Decision],
    verdict: Verdict,
    *,
    told: Sequence[event_log.Entry] = (),
    beside: Sequence[Statement] = (),
    over: bool = False,
) -> None:
    """Write what follows from a verdict on these votes. `told`: events to write before; `beside`: statements.

    `over`: the undo window of the end that waits has passed. Where the votes come to that end again, it goes on waiting
    as long as it did; another end has a window of its own.
    """
    events, end = [*told], verdict.end
    if verdict.lapsed:
        events.append(_lapse(gate, standing, [vote for vote, _ in verdict.lapsed]))
    passed = over and end is not None and gate.ending in ("", end.digest)  # "": of a release before this column
    window = None if passed else window_of(gate.policy, needs)
    if end is not None and window is None:
        closing.close(gate, standing, _gate_end(standing, end, votes), told=events)
        return
    asked, waited, before = list(gate.awaits), gate.settles_as, gate.ending
    awaits = [] if gate.policy.plain else asked if end else verdict.awaits
    kind = str(_kind(standing, end)) if end else ""
    gate.project(awaits=awaits, kind=kind, ending=end.digest if end else "", window=window if end else None)
    proof = evidence.opened(gate, standing)
    if awaits != asked:
        events.append(gate.entry("gate.asks", by=SYSTEM, data={"asks": awaits, "before": asked, **proof}))
    if end is not None and gate.ending != before:
        data = {"kind": kind, "settles_at": gate.settles_at.isoformat() if gate.settles_at else None, **proof}
        events.append(gate.entry("gate.settling", by=actors.of_user(_last(end, votes).user), data=data))
    elif end is None and waited:
        events.append(gate.entry("gate.reconsidered", by=SYSTEM, data={"kind": waited, **proof}))
    event_log.append_events(events, extras=beside)


def _kind(standing: Proposal, end: End) -> Outcome.Kind:
    return Outcome.Kind.REJECTED if end.rejects else closing.agreed_kind(standing)


def _last(end: End, votes: Sequence[Decision]) -> Decision:
    return next(each for each in votes if each.pk == end.votes[-1])


def _gate_end(standing: Proposal, end: End, votes: Sequence[Decision]) -> GateEnd:
    counted = [each for each in votes if each.pk in end.votes]
    return GateEnd(kind=_kind(standing, end), by=actors.of_user(_last(end, votes).user), decisions=counted)


def _lapse(gate: Gate, standing: Proposal, lapsed: Sequence[CastVote]) -> event_log.Entry:
    """Let votes count no more; their senders can vote again if they may again."""
    gate.decisions.filter(pk__in=[each.decision for each in lapsed]).update(counts=False)
    users = [f"user:{each.person}" for each in lapsed]
    data = {"users": users, "proposal": standing.number, **evidence.opened(gate, standing)}
    return gate.entry("gate.lapsed", by=SYSTEM, data=data)


def reconsider(
    gate: Gate, standing: Proposal, *, told: Sequence[event_log.Entry] = (), beside: Sequence[Statement] = ()
) -> None:
    """Judge the votes at a gate once more after something else has changed, and write what follows."""
    votes, needs = counting(gate), required.of(standing, gate.policy)
    evidence.check_voices(gate, votes)
    project(gate, standing, needs, votes, judged(gate, needs, votes), told=told, beside=beside)


def look_again(gate_id: int) -> None:
    """Judge the votes at an open gate anew: they lapse when their senders lose their authority.

    Where they come to the same, nothing is written. Raises NotVerified.
    """
    with transaction.atomic():
        if not Gate.objects.select_for_update().open().filter(pk=gate_id):
            return
        reading = read(gate_id)
        gate, standing = reading.gate, reading.proposal
        evidence.check(standing)
        votes, needs = counting(gate), required.of(standing, gate.policy)
        evidence.check_voices(gate, votes)
        verdict = judged(gate, needs, votes)
        if verdict.lapsed or (verdict.end is None and verdict.awaits != gate.awaits and not gate.policy.plain):
            gate.move()
            project(gate, standing, needs, votes, verdict)
