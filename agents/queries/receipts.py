"""Reads what was performed under the approvals of gates, from the ledger of effects."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

from approvals.cards.likeness import Likeness
from approvals.consequences.performed import AlikeAsked, DoneAlike, GivenGrant, GivenGrants, PerformedEffect
from checkpoints.postgresql.sql import run_sql
from checkpoints.values.canonical_json import decode_canonical

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

# One part for each kind of likeness, along its index. Of what was done very often the newest grants are looked at.
_PART = """
SELECT w.gate, '{how}', o.gate_id, e.id, t.action, t.effect, e.status IN ('done', 'kept'),
  coalesce(e.settled_at, e.intended_at)
FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[]) w(gate, lineage, how, digest)
CROSS JOIN LATERAL (
  SELECT id, outcome_id, action, effect FROM approvals_grant
  WHERE same_{how} = w.digest AND same_{how} <> '' ORDER BY id DESC LIMIT 20) t
JOIN agents_effect e ON e.grant_id = t.id AND e.status IN ('done', 'kept', 'intended', 'unknown', 'abandoned')
JOIN approvals_outcome o ON o.id = t.outcome_id JOIN approvals_gate g ON g.id = o.gate_id
JOIN checkpoints_run r ON r.id = g.run_id
WHERE w.how = '{how}' AND coalesce(r.lineage, r.id) <> w.lineage
"""
_ALIKE = " UNION ALL ".join(_PART.format(how=how) for how in Likeness._fields)


def done_alike(asked: Sequence[AlikeAsked]) -> list[DoneAlike]:
    """List what other lineages did, or may have done, that is like what these gates ask for. One statement."""
    columns = [list(column) for column in zip(*asked, strict=True)]
    return [
        DoneAlike(asked=gate, how=how, gate=under, effect_id=id, action=action, effect=effect, done=done, at=at)
        for gate, how, under, id, action, effect, done, at in run_sql(_ALIKE, columns)
    ]


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
        result=None if result is None else decode_canonical(bytes(result)), undo=undo or "", undone_at=undone_at,
    )  # fmt: skip
