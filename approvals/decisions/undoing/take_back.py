"""Takes a person's decision back while its gate is still open, where the policy gives an undo window."""

from __future__ import annotations

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
    try:
        with transaction.atomic(durable=True):
            return _take_back(gate.pk, by, decision)
    except DecisionRefused as refusal:
        with transaction.atomic(durable=True):
            data = {"kind": refusal.code, "verdict": "undo"}
            gate.say("decision.refused", by=actors.of_user(by), data=data)
        raise


def _take_back(gate_id: int, by: User, wanted: int | None) -> Decision:
    reading = read(gate_id, user_id=by.pk)
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
        raise _too_late(read(gate_id).gate)
    votes = counting(gate)
    evidence.check_voices(gate, votes)
    standing = standing if standing.number == gate.proposal else gate.standing()
    mine = next((vote for vote in votes if vote.user_id == by.pk), None)
    if mine is None or (wanted is not None and mine.pk != wanted):
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
