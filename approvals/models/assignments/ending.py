"""Statements that end rows of the desk with a gate, or with a vote at it."""

from __future__ import annotations

from psycopg.types.numeric import Int8

from checkpoints.postgresql.sql import Statement

_ENDS = (
    "DELETE FROM approvals_gateclaim WHERE gate_id = $1",
    "UPDATE approvals_addedteam SET open = false WHERE gate_id = $1 AND open",
    "UPDATE approvals_escalation SET status = 'dropped' WHERE gate_id = $1 AND status = 'planned'",
)
_VOTED = "DELETE FROM approvals_gateclaim WHERE gate_id = $1 AND user_id = $2"


def with_gate(gate: int) -> list[Statement]:
    """Return the statements that end the gate's claim, its place in queues of added teams, and its escalation."""
    return [(each, [Int8(gate)]) for each in _ENDS]


def with_vote(gate: int, *, by: int) -> list[Statement]:
    """Return the statement that ends the voter's own claim."""
    return [(_VOTED, [Int8(gate), Int8(by)])]
