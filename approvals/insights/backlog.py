"""Measures the gates that wait: how many there were each day, how long those that are open have waited."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any

from django.db import connection
from django.utils import timezone

from .closed_gates import InsightFilters, filter_conditions, filter_parameters
from .figures import SPANS

# How long the gates of each of figures.SPANS have waited: at least, and less than.
_LEAST, _LESS = [None, *(end for _, end in SPANS.values() if end)], [end for _, end in SPANS.values()]
# Each count along one index that has all it needs: a team's open gates by opening, span after span, which spares a
# group for each row; those that say what their waiting costs; all by opening; the closed ones.
_OPEN = """
SELECT 'open', span.name, waiting.* FROM unnest(%(names)s::text[], %(least)s::interval[], %(less)s::interval[])
  span (name, least, less)
CROSS JOIN LATERAL (
  SELECT count(*), extract(epoch FROM sum(statement_timestamp() - g.opened_at))::float8,
    extract(epoch FROM statement_timestamp() - min(g.opened_at))::float8
  FROM approvals_gate g WHERE g.team_id = ANY(%(teams)s) AND g.status = 'open'
    AND g.opened_at <= coalesce(statement_timestamp() - span.least, 'infinity')
    AND g.opened_at > coalesce(statement_timestamp() - span.less, '-infinity') {conditions}
  HAVING count(*) > 0) waiting
UNION ALL
SELECT 'cost', g.delay_currency, 0, 0,
  sum(g.delay_value * extract(epoch FROM statement_timestamp() - g.opened_at))::float8 / 3600
FROM approvals_gate g
WHERE g.team_id = ANY(%(teams)s) AND g.status = 'open' AND g.delay_currency > '' {conditions} GROUP BY 2
UNION ALL
SELECT 'opened', (%(first)s::date + width_bucket(g.opened_at, %(days)s::timestamptz[]) - 1)::text, count(*), 0, 0
FROM approvals_gate g WHERE g.team_id = ANY(%(teams)s) AND g.opened_at >= %(since)s {conditions} GROUP BY 2
UNION ALL
SELECT 'closed', (%(first)s::date + width_bucket(g.closed_at, %(days)s::timestamptz[]) - 1)::text, count(*), 0, 0
FROM approvals_gate g WHERE g.team_id = ANY(%(teams)s) AND g.status <> 'open' AND g.closed_at >= %(since)s {conditions}
GROUP BY 2
"""


@dataclass(frozen=True)
class Backlog:
    """The gates that wait now, and how many waited at the end of each day."""

    open: int
    waited: timedelta  # by all of them together
    longest: timedelta | None
    spread: dict[str, int]  # by figures.SPANS, how long they have waited so far
    costs: dict[str, float]  # by currency: what their waiting has cost so far, of those that say what it costs
    days: list[tuple[date, int]]


def read(teams: Collection[int], wanted: InsightFilters) -> Backlog:
    """Read the backlog of these teams; one statement."""
    spans = {"names": list(SPANS), "least": _LEAST, "less": _LESS}
    # The days begin by this process's rules of the reader's zone: PostgreSQL may have others, or not know its name.
    first = wanted.first_day
    days = [timezone.make_aware(datetime.combine(first + timedelta(days=n), time.min)) for n in range(wanted.days)]
    asked = {**filter_parameters(teams, wanted), **spans, "first": first, "days": days}
    with connection.cursor() as cursor:
        cursor.execute(_OPEN.format(conditions=filter_conditions(wanted)), asked)
        found = cursor.fetchall()
    return of_rows(found, wanted.first_day, wanted.days)


def of_rows(rows: Sequence[tuple[Any, ...]], first: date, days: int) -> Backlog:
    """Build the backlog from the statement's rows. The days are counted back from what is open now. Pure."""
    spread, waited, longest = dict.fromkeys(SPANS, 0), 0.0, 0.0
    came: dict[str, int] = {}
    went: dict[str, int] = {}
    costs: dict[str, float] = {}
    for what, key, number, seconds, most in rows:
        if what == "open":
            spread[key] += number
            waited, longest = waited + seconds, max(longest, most)
        elif what == "cost":
            costs[key] = most
        else:
            (came if what == "opened" else went)[key] = number
    opened = sum(spread.values())
    ends: list[tuple[date, int]] = []
    level = opened
    for day in (first + timedelta(days=number) for number in reversed(range(days))):
        ends.append((day, level))
        level += went.get(day.isoformat(), 0) - came.get(day.isoformat(), 0)
    return Backlog(
        open=opened,
        waited=timedelta(seconds=waited),
        longest=timedelta(seconds=longest) if opened else None,
        spread=spread,
        costs=dict(sorted(costs.items())),
        days=ends[::-1],
    )
