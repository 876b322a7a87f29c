"""Reads what was performed under the approvals of gates, from the ledger of effects."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

from approvals.consequences.performed import GivenGrant, GivenGrants, PerformedEffect
from checkpoints.postgresql.sql import run_sql
from checkpoints.values.canonical_json import decode

# $2: whether results are read too. An effect that was begun before the gate closed was not begun under it: where a
# checkpoint since holds its result, that was taken over.
_GIVEN = """
SELECT o.gate_id, EXISTS (SELECT FROM approvals_gate_replaces WHERE to_gate_id = o.gate_id),
  t.id, t.action, t.effect, e.status, e.key, e.intended_at, e.settled_at, e.attempts, e.error,
  CASE WHEN $2::boolean THEN e.result END, u.status, u.settled_at,
  e.id IS NULL AND EXISTS (
    SELECT FROM agents_effect b JOIN checkpoints_checkpoint l ON l.id = ANY(b.landings) AND l.run_id = b.run_id
    WHERE b.run_id = g.run_id AND b.step = t.effect AND b.action IN ('', t.action) AND b.undoes_id IS NULL
      AND b.intended_at < g.closed_at AND l.seq > asked.seq),
  e.id IS NULL AND EXISTS (
    SELECT FROM checkpoints_checkpoint c JOIN checkpoints_checkpoint p ON p.id = c.parent
    WHERE c.run_id = g.run_id AND c.seq > asked.seq AND c.kind IN ('rewind', 'edit')
      AND (p.run_id <> c.run_id OR p.seq <= asked.seq))
FROM approvals_outcome o JOIN approvals_gate g ON g.id = o.gate_id
LEFT JOIN approvals_grant t ON t.outcome_id = o.id
LEFT JOIN checkpoints_checkpoint asked ON asked.id = g.checkpoint
LEFT JOIN agents_effect e ON e.grant_id = t.id
LEFT JOIN LATERAL (
  SELECT status, settled_at FROM agents_effect WHERE undoes_id = e.id ORDER BY id DESC LIMIT 1) u ON true
WHERE o.gate_id = ANY($1) ORDER BY o.gate_id, t.id
"""


def given(gates: Sequence[int], results: bool) -> dict[int, GivenGrants]:
    """Return the grants of these gates with the effects that were begun under them, and the newest undo of each."""
    found: dict[int, GivenGrants] = {}
    for gate, rows in groupby(run_sql(_GIVEN, [list(gates), results]), itemgetter(0)):
        every = list(rows)
        found[gate] = GivenGrants(grants=[_given(*row[2:]) for row in every if row[2]], again=every[0][1])
    return found


def _given(id: int, action: str, effect: str, *rest: Any) -> GivenGrant:
    *begun, reused, passed_by = rest
    return GivenGrant(
        id=id, action=action, effect=effect, begun=_begun(*begun) if begun[0] else None, reused=reused,
        passed_by=bool(passed_by),
    )  # fmt: skip


def _begun(
    status: str, key: str, begun_at: datetime, ended_at: datetime | None, attempts: int, error: str,
    result: bytes | None, undo: str | None, undone_at: datetime | None,
) -> PerformedEffect:  # fmt: skip
    return PerformedEffect(
        status=status, key=key, begun_at=begun_at, ended_at=ended_at, attempts=attempts, error=error,
        result=None if result is None else decode(bytes(result)), undo=undo or "", undone_at=undone_at,
    )  # fmt: skip
