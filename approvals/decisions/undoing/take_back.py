"""Takes a person's decision back while its gate is still open, where the policy gives an undo window."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib.auth.models import User
from django.db import transaction

from approvals.audit import evidence
from approvals.decisions import quorum
from approvals.errors import DecisionRefused, NotAllowed, NothingToUndo, NoUndo, TokenMayNotDecide, UndoTooLate
from approvals.gates import settling
from approvals.gates.reading import read
from approvals.models import Decision, Gate
from approvals.policy import required
from checkpoints import actors, crash_points
from checkpoints.access import token_scope

from .settle import counting


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
    if not reading.decides and not gate.decisions.filter(user=by).exists():
        raise NotAllowed
    if gate.policy.undo_window is None:
        raise NoUndo
    if token_scope.by_token(by) and not gate.policy.tokens_decide:
        raise TokenMayNotDecide
    evidence.check(standing)
    crash_points.point("before_undone", gate.step)
    if not gate.move():  # locked from here on, by whoever was first: another undo, a decision, or the window's end
        raise _too_late(read(gate.pk).gate)
    votes = counting(gate)
    evidence.check_voices(gate, votes)
    standing = standing if standing.number == gate.proposal else gate.standing()
    mine = next((vote for vote in votes if vote.user_id == by.pk), None)
    if mine is None or (decision is not None and mine.pk != decision):
        raise NothingToUndo
    Decision.objects.filter(pk=mine.pk).update(counts=False)
    mine.counts = False
    others = [vote for vote in votes if vote.pk != mine.pk]
    end, lapsed = quorum.ending(gate, standing, required.of(standing, gate.policy), others)
    data = {"kind": mine.verdict, "decision": mine.pk, **evidence.opened(gate, standing)}
    told = [gate.entry("gate.undone", by=actors.of_user(by), data=data), *lapsed]
    settling.end_or_wait(gate, standing, end, told=told)
    crash_points.point("after_undone", gate.step)
    return mine


def _too_late(gate: Gate) -> UndoTooLate:
    closed, outcome = gate.closed_at, getattr(gate, "outcome", None)
    return UndoTooLate(f"{closed:%H:%M:%S}" if closed else "", outcome.get_kind_display() if outcome else gate.status)
