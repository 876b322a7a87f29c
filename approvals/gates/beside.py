"""Finds the open gates beside one: those that ask for exactly the same, and those about the same resource.

Gates that ask for the same are decided together (see the bulk decisions), each by its own digest. Of gates about
one resource the first that opened comes first, since what it does may change what the others are about.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from checkpoints.postgresql.sql import Statement

SAME = 199  # other gates that ask for the same: with the one beside them as many as one bulk decision takes
ABOUT = 20  # gates about the same resource

# `{}`: ids of the gates that the reader sees. Along an index each.
_BESIDE = """
SELECT json_build_object('id', o.id, 'title', o.title, 'agent', p.agent, 'external', p.external,
  'opened_at', o.opened_at, 'same', q.same, 'run', o.run_id)
FROM approvals_gate g CROSS JOIN LATERAL (
  (SELECT s.id, true AS same FROM approvals_gate s WHERE s.team_id = g.team_id AND s.status = 'open'
    AND s.request_digest <> '' AND s.request_digest = g.request_digest AND s.id <> g.id
    AND s.proposal = 1 AND g.proposal = 1
    ORDER BY s.opened_at, s.id LIMIT %s)
  UNION ALL
  (SELECT s.id, false FROM approvals_gate s WHERE s.team_id = g.team_id AND s.status = 'open'
    AND s.resource <> '' AND s.resource = g.resource AND s.id <> g.id
    AND (s.request_digest <> g.request_digest OR s.proposal > 1 OR g.proposal > 1)
    ORDER BY s.opened_at, s.id LIMIT %s)) q
JOIN approvals_gate o ON o.id = q.id
JOIN checkpoints_run r ON r.id = o.run_id JOIN checkpoints_plan p ON p.id = r.plan_id
WHERE g.id = %s AND g.status = 'open' AND o.id IN ({})
ORDER BY o.opened_at, o.id
"""


@dataclass(frozen=True, kw_only=True)
class OpenBeside:
    """An open gate beside another one."""

    id: int
    run: int
    title: str
    agent: str
    external: bool
    opened_at: datetime
    same: bool  # asks for exactly the same; else it is about the same resource

    @property
    def outside(self) -> bool:
        """Tell whether an external program wrote the title."""
        return self.external

    @classmethod
    def of(cls, row: dict[str, Any]) -> Self:
        """Build it from a row of `statement`."""
        return cls(**{**row, "opened_at": datetime.fromisoformat(row["opened_at"])})


def statement(gate: int, seen: Statement) -> Statement:
    """Return the statement that finds the open gates beside this one among those that `seen` selects, oldest first."""
    sql, values = seen
    return _BESIDE.format(sql), [SAME, ABOUT, gate, *values]
