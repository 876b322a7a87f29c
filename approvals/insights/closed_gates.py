"""Reads the gates of a period that have closed, as plain rows: what every figure counts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, NamedTuple

from django.db import connection
from django.utils import timezone

from approvals.models import Outcome
from approvals.models.outcome import BY_RULE
from approvals.policy.requirements import Requirements

from .durations import span_key
from .filters import InsightFilters

MOST = 10_000  # gates, the newest ones
NOBODY = frozenset({Outcome.Kind.EXPIRED, Outcome.Kind.WITHDRAWN})  # outcomes that no person decided

# The newest of each team, along the index of its closed gates, and the newest of these.
_CLOSED = """
WITH closed AS MATERIALIZED (
  SELECT q.* FROM unnest(%(teams)s::bigint[]) t(id) CROSS JOIN LATERAL (
    SELECT g.id, g.team_id, g.policy_id, g.run_id, g.risk, g.opened_at, g.closed_at FROM approvals_gate g
    WHERE g.team_id = t.id AND g.status <> 'open' AND g.closed_at >= %(since)s {conditions}
    ORDER BY g.closed_at DESC, g.id DESC LIMIT %(most)s) q
  ORDER BY q.closed_at DESC, q.id DESC LIMIT %(most)s)
SELECT c.id, c.team_id, policy.name, plan.agent, c.risk, outcome.kind, c.closed_at,
  extract(epoch FROM c.closed_at - c.opened_at)::float8, outcome.by, coalesce(first.requirements, '')
FROM closed c JOIN approvals_policy policy ON policy.id = c.policy_id
JOIN checkpoints_run run ON run.id = c.run_id JOIN checkpoints_plan plan ON plan.id = run.plan_id
JOIN approvals_outcome outcome ON outcome.gate_id = c.id
LEFT JOIN approvals_proposal first ON first.gate_id = c.id AND first.number = 1 AND first.requirements <> ''
ORDER BY c.closed_at DESC, c.id DESC
"""
_OF_POLICY = "AND g.policy_id IN (SELECT id FROM approvals_policy WHERE team_id = g.team_id AND name = %(policy)s)"
_OF_AGENT = """AND EXISTS (SELECT FROM checkpoints_run r JOIN checkpoints_plan p ON p.id = r.plan_id
  WHERE r.id = g.run_id AND p.agent = %(agent)s)"""


class CountedGate(NamedTuple):
    """One closed gate. `seconds`: from its opening until it closed."""

    id: int
    team: int
    policy: str
    agent: str
    risk: str
    kind: str  # of its outcome
    at: datetime
    seconds: float
    by: str = ""  # the actor that closed it
    requirements: str = ""  # of the agent's own proposal, where the policy has rules

    @property
    def day(self) -> date:
        """Return the day on which it closed, in the reader's zone."""
        return timezone.localdate(self.at)

    @property
    def by_people(self) -> bool:
        """Tell whether people decided it."""
        return self.kind not in NOBODY and not self.by_rule

    @property
    def by_rule(self) -> bool:
        """Tell whether a rule of its policy approved it, without people."""
        return self.by.startswith(BY_RULE)

    @property
    def sampled(self) -> bool:
        """Tell whether a rule would have approved it, and it was shown to people as a sample."""
        return bool(self.requirements) and Requirements.from_text(self.requirements).sampled

    @property
    def rule(self) -> str:
        """Name the rules that approved it, or would have; "" for any other gate."""
        if not self.requirements or not (self.by_rule or self.sampled):
            return ""
        return ", ".join(Requirements.from_text(self.requirements).rules)


@dataclass(frozen=True)
class CountedGates:
    """The closed gates of a period, newest first; `cut` where there are more than MOST."""

    rows: Sequence[CountedGate]
    cut: bool


def read(teams: Collection[int], wanted: InsightFilters) -> CountedGates:
    """Read the newest closed gates of these teams, by the filters of the whole page; one statement."""
    of = [team for team in teams if wanted.team in (0, team)]
    with connection.cursor() as cursor:
        cursor.execute(_CLOSED.format(conditions=filter_conditions(wanted)), filter_parameters(of, wanted))
        rows = [CountedGate(*row) for row in cursor.fetchall()]
    return CountedGates(rows[:MOST], len(rows) > MOST)


def filter_conditions(wanted: InsightFilters) -> str:
    """Return what the filters ask of a gate `g`, as SQL with named parameters; see `filter_parameters`."""
    asked = [
        "AND g.risk = %(risk)s" if wanted.risk else "",
        _OF_POLICY if wanted.policy else "",
        _OF_AGENT if wanted.agent else "",
    ]
    return "\n".join(filter(None, asked))


def filter_parameters(teams: Collection[int], wanted: InsightFilters) -> Mapping[str, Any]:
    """Return the parameters of `filter_conditions`, and those that every statement has."""
    return {
        "teams": list(teams), "since": wanted.since, "most": MOST + 1,
        "risk": wanted.risk, "policy": wanted.policy, "agent": wanted.agent,
    }  # fmt: skip


def part(rows: Iterable[CountedGate], wanted: InsightFilters) -> list[CountedGate]:
    """Keep the rows that one figure counts, but for its field and its person, which other tables hold."""
    return [
        row
        for row in rows
        if wanted.kind in ("", row.kind)
        and (not wanted.within or (row.by_people and wanted.within == span_key(row.seconds)))
        and (not wanted.rule or (wanted.rule == row.rule and wanted.sample == row.sampled))
        and (not wanted.day or wanted.day == row.day.isoformat())
    ]
