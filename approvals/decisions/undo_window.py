"""The undo window: a person takes their decision back within it, and after it the gate ends.

Until then the gate stays open, so that nothing of it can run: an undo needs no way back from "decided", and a crash
loses nothing. At its end everything is checked once more that closing a gate checks: the rows against their events, who
may still decide, and that it would do no more than its sender was shown. Where it would, their vote counts no more, and
the gate stays open. The sweeper calls this.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.contrib.auth.models import User
from django.db import transaction

from approvals.audit import evidence
from approvals.consequences import impact_sources
from approvals.consequences.gate import GateImpacts
from approvals.errors import DecisionRefused, NotAllowed, NothingToUndo, NoUndo, TokenMayNotDecide, UndoTooLate
from approvals.gates.projection import counting, judged, project, reconsider
from approvals.gates.reading import GateReading, read
from approvals.models import Decision, Gate
from approvals.policy import required
from checkpoints import actors, crash_points
from checkpoints.access import token_scope

from .decision_impact import DecisionImpact, impact_of_vote

MORE = "It would do more by now than its sender was shown."


def take_back(gate: Gate, *, by: User, decision: int | None = None) -> Decision:
    """Take this person's decision back, so that it counts no more, and return it. Opens a transaction of its own.

    `decision`: only where it is the one that counts now. What others decided is counted again. After the deadline
    nobody can decide again, and the gate expires. Raises UndoTooLate, NoUndo, NothingToUndo, NotAllowed or
    TokenMayNotDecide, of which there is an event by then; and NotVerified.
    """
    with recorded(gate, by=by), transaction.atomic(durable=True):
        return take_back_within(gate, by=by, decision=decision)


@contextmanager
def recorded(gate: Gate, *, by: User) -> Iterator[None]:
    """Record the refusal of an undo in a transaction of its own, as that of the undo is rolled back."""
    try:
        yield
    except DecisionRefused as refusal:
        with transaction.atomic(durable=True):
            data = {"kind": refusal.code, "verdict": "undo"}
            gate.say("decision.refused", by=actors.of_user(by), data=data)
        raise


def take_back_within(gate: Gate, *, by: User, decision: int | None = None) -> Decision:
    """Do the same within the caller's transaction, which is inside `recorded`."""
    reading = read(gate.pk, user_id=by.pk)
    gate, standing = reading.gate, reading.proposal
    if not reading.stands.by and not gate.decisions.filter(user=by).exists():
        raise NotAllowed
    if gate.policy.undo_window is None:
        raise NoUndo
    if token_scope.by_token(by) and not gate.policy.tokens_decide:
        raise TokenMayNotDecide
    evidence.check(standing)
    crash_points.point("before_undone", gate.step)
    if not gate.move():  # locked from here on, by whoever was first: another undo, a decision, or the window's end
        gate = read(gate.pk).gate
        ended = gate.outcome.get_kind_display() if hasattr(gate, "outcome") else gate.status
        raise UndoTooLate(f"{gate.closed_at:%H:%M:%S}" if gate.closed_at else "", ended)
    mine = next((vote for vote in counting(gate) if vote.user_id == by.pk), None)
    if mine is None or (decision is not None and mine.pk != decision):
        raise NothingToUndo
    standing = standing if standing.number == gate.proposal else gate.standing()
    evidence.check_voices(gate, [mine])
    Decision.objects.filter(pk=mine.pk).update(counts=False)
    mine.counts = False
    data = {"kind": mine.verdict, "decision": mine.pk, **evidence.opened(gate, standing)}
    reconsider(gate, standing, told=[gate.entry("gate.undone", by=actors.of_user(by), data=data)])
    crash_points.point("after_undone", gate.step)
    return mine


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
        ahead = _ahead(reading, votes)
        crash_points.point("before_settled", gate.step)
        if not gate.move(settled=gate.version):
            return False
        evidence.check_voices(gate, votes)
        if ahead and {impact_sources.stamp_of(gate.run)} != {each.stamp for each in ahead.values()}:
            ahead = _ahead(reading, votes)
        needs, barred = required.of(standing, gate.policy), dict[int, str]()
        while (verdict := judged(gate, needs, votes, barred=barred)).end is not None:
            last = next(vote for vote in votes if vote.pk == verdict.end.votes[-1])
            if last.pk not in ahead or not _does_more(ahead[last.pk], last, gate):
                break
            barred[last.pk] = MORE  # what is left is judged again: it may be another vote that was shown less, too
        project(gate, standing, needs, votes, verdict, over=True)
        crash_points.point("after_settled", gate.step)
    return True


def _ahead(reading: GateReading, votes: Sequence[Decision]) -> dict[int, DecisionImpact]:
    """Return, by vote, what it would do now as the last; none where nothing was shown, and nothing can be repeated."""
    standing = reading.proposal
    future = GateImpacts(reading.gate, standing.card, standing.state_patch)
    answer = standing.content["answer"]
    found = {
        vote.pk: impact_of_vote(future, answer, rejects=vote.rejects, back_to=vote.back_to)
        for vote in votes
        if vote.shown or reading.acted
    }
    return {pk: DecisionImpact(impact=impact, stamp=future.history.stamp) for pk, impact in found.items()}


def _does_more(ahead: DecisionImpact, vote: Decision, gate: Gate) -> bool:
    """Tell whether it would do more than was shown, or repeat an effect that its sender did not confirm."""
    try:
        ahead.check_confirmed(vote.confirmed, run=gate.run_id)
        ahead.check_shown(vote.shown)
    except DecisionRefused:
        return True
    return False
