"""How agents' runs went, as far as one person may see them: figures over the newest runs and gates alone.

They tell of the last thirty days, and of a thousand runs of an agent at most: what a page can read at any size. A
figure over all time would say less of the agent that there is now. A run that is due and that nobody takes up is
told too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from typing import Any

from django.db import connection

from checkpoints.models import Run

LOOKED_AT = 1000  # the newest runs of an agent
WINDOW = timedelta(days=30)  # in which a run ended, or a gate was closed
PATIENCE = timedelta(seconds=60)  # how long a run may be due before it counts as taken up by nobody
WITHIN = (timedelta(minutes=5), timedelta(hours=1), timedelta(hours=8), timedelta(days=1))

_FIGURES = """
WITH r AS MATERIALIZED (
  SELECT a.agent, q.* FROM (SELECT DISTINCT agent FROM unnest(%(agents)s::text[]) d(agent)) a CROSS JOIN LATERAL (
    SELECT n.* FROM unnest(%(agents)s::text[], %(plans)s::bigint[]) p(agent, id)
    CROSS JOIN unnest(%(teams)s::bigint[]) t(id) CROSS JOIN LATERAL (
      SELECT id, plan_id, status, wake_at, created_at, lease_until, finished_at FROM checkpoints_run
      WHERE plan_id = p.id AND team_id = t.id ORDER BY id DESC LIMIT %(most)s) n
    WHERE p.agent = a.agent ORDER BY n.id DESC LIMIT %(most)s) q)
SELECT r.agent, 'run', r.plan_id, r.status,
  max(extract(epoch FROM statement_timestamp() - CASE r.status
    WHEN 'queued' THEN coalesce(r.wake_at, r.created_at) WHEN 'running' THEN r.lease_until END)::float8), count(*)
FROM r WHERE r.finished_at IS NULL OR r.finished_at > statement_timestamp() - %(window)s GROUP BY 1, 3, 4
UNION ALL
SELECT r.agent, 'gate', NULL, g.status, extract(epoch FROM g.closed_at - g.opened_at)::float8, 1
FROM r JOIN approvals_gate g ON g.run_id = r.id
WHERE g.status <> 'open' AND g.kind = 'review' AND g.closed_at > statement_timestamp() - %(window)s
"""


@dataclass(frozen=True, kw_only=True)
class AgentFigures:
    """Of the newest runs of an agent; times are None where nothing was waited for."""

    statuses: Mapping[str, int] = field(default_factory=dict)  # those that ended within WINDOW, and all that live
    decided: int = 0
    expired: int = 0
    withdrawn: int = 0
    half: timedelta | None = None  # half of the gates were decided in no more than that
    most: timedelta | None = None  # nine of ten were
    within: Sequence[int] = ()  # how many were decided in each of WITHIN, and at last those that took longer
    due: Mapping[int, timedelta] = field(default_factory=dict)  # plan -> for how long nobody has taken up a run of it

    @property
    def ended(self) -> int:
        """Count those that have ended."""
        return sum(self.statuses.get(each, 0) for each in ("completed", "failed", "cancelled"))

    @property
    def success(self) -> int | None:
        """Return how many in a hundred of those that ended were completed; None where none has."""
        return round(100 * self.statuses["completed"] / self.ended) if self.ended else None

    @property
    def any(self) -> bool:
        """Tell whether there is a run to tell of."""
        return any(self.statuses.values())


def of_agents(plans: Mapping[str, Collection[int]], teams: Collection[int]) -> dict[str, AgentFigures]:
    """Return figures by agent, from the ids of its plans, over its newest runs in these teams. One statement."""
    pairs = [(agent, plan) for agent, of in plans.items() for plan in of]
    found: dict[str, list[Any]] = {agent: [] for agent in plans}
    if pairs:
        asked: dict[str, Any] = {
            "agents": [agent for agent, _ in pairs], "plans": [plan for _, plan in pairs], "teams": list(teams),
            "most": LOOKED_AT, "window": WINDOW,
        }  # fmt: skip
        with connection.cursor() as cursor:
            cursor.execute(_FIGURES, asked)
            for agent, *row in cursor.fetchall():
                found[agent].append(row)
    return {agent: _figures(rows) for agent, rows in found.items()}


def _figures(rows: Sequence[Any]) -> AgentFigures:
    """Make figures from rows of (what, plan, status, seconds, number)."""
    runs = [row[1:] for row in rows if row[0] == "run"]
    closed = [(status, seconds) for what, _, status, seconds, _ in rows if what == "gate"]
    said = [status for status, _ in closed]
    statuses = dict.fromkeys(Run.Status.values, 0)
    waited = sorted(seconds for status, seconds in closed if status == "decided")
    due: dict[int, timedelta] = {}
    for plan, status, seconds, number in runs:
        statuses[status] += number
        if seconds is not None and seconds > PATIENCE.total_seconds():
            due[plan] = max(due.get(plan, timedelta(0)), timedelta(seconds=seconds))
    return AgentFigures(
        statuses=statuses,
        decided=said.count("decided"),
        expired=said.count("expired"),
        withdrawn=said.count("withdrawn"),
        half=quantile(waited, 0.5),
        most=quantile(waited, 0.9),
        within=spread(waited),
        due=due,
    )


def spread(waited: Sequence[float]) -> list[int]:
    """Count the seconds that lie within each of WITHIN and not the one before, and at last those beyond all."""
    bounds = [0.0, *(each.total_seconds() for each in WITHIN), float("inf")]
    return [sum(low <= each < high for each in waited) for low, high in pairwise(bounds)]


def quantile(ordered: list[float], share: float) -> timedelta | None:
    """Return the smallest of these that so large a share does not exceed; None of none."""
    if not ordered:
        return None
    return timedelta(seconds=ordered[min(int(share * len(ordered)), len(ordered) - 1)])
