"""How an agent's runs went, as far as one person may see them: figures over the newest runs and gates alone.

They say of the last thousand what a page can read at any size; a figure over all time would say less of the agent
that there is now.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta

from django.db import connection

from checkpoints.counting import MOST, Capped
from checkpoints.models import Run

LOOKED_AT = 1000  # the newest ended runs, and the newest closed gates

_ENDED = """
SELECT r.status, r.id FROM unnest(%s::bigint[]) t(id) CROSS JOIN unnest(%s::bigint[]) p(id) CROSS JOIN LATERAL (
  SELECT id, status FROM checkpoints_run WHERE plan_id = p.id AND team_id = t.id
  ORDER BY id DESC LIMIT %s) r ORDER BY r.id DESC LIMIT %s
"""
_WAITED = """
SELECT g.status, extract(epoch FROM g.closed_at - g.opened_at) FROM approvals_gate g
WHERE g.run_id = ANY(%s) AND g.status <> 'open' AND g.kind = 'review' ORDER BY g.id DESC LIMIT %s
"""


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Of the newest runs of an agent; times are None where nothing was waited for."""

    statuses: dict[str, Capped]
    decided: int
    expired: int
    withdrawn: int
    half: timedelta | None  # half of the gates were decided in no more than that
    most: timedelta | None  # nine of ten were

    @property
    def ended(self) -> int:
        """How many have ended."""
        return sum(self.statuses[each].number for each in ("completed", "failed", "cancelled"))

    @property
    def success(self) -> int | None:
        """Of those that ended, how many in a hundred were completed; None where none has."""
        return round(100 * self.statuses["completed"].number / self.ended) if self.ended else None


def of_plans(plans: Collection[int], teams: Collection[int]) -> Figures:
    """Over the newest runs of these plans in these teams; two statements."""
    with connection.cursor() as cursor:
        cursor.execute(_ENDED, [list(teams), list(plans), LOOKED_AT, LOOKED_AT])
        runs = cursor.fetchall()
        cursor.execute(_WAITED, [[run for _, run in runs], LOOKED_AT])
        gates = cursor.fetchall()
    found = [status for status, _ in runs]
    counts = {status: found.count(status) for status in Run.Status.values}
    closed = [status for status, _ in gates]
    waited = sorted(float(seconds) for status, seconds in gates if status == "decided")
    return Figures(
        statuses={status: Capped(min(count, MOST), count > MOST) for status, count in counts.items()},
        decided=closed.count("decided"),
        expired=closed.count("expired"),
        withdrawn=closed.count("withdrawn"),
        half=quantile(waited, 0.5),
        most=quantile(waited, 0.9),
    )


def quantile(ordered: list[float], share: float) -> timedelta | None:
    """The smallest of these that so large a share does not exceed; None of none."""
    if not ordered:
        return None
    return timedelta(seconds=ordered[min(int(share * len(ordered)), len(ordered) - 1)])
