"""Reads the gates that closed in a period, by the filters of an address, as plain rows: what every figure counts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime, time, timedelta
from typing import Any, NamedTuple, Self
from urllib.parse import urlencode

from django.db import connection
from django.utils import timezone

from approvals.models import Gate, Outcome
from approvals.models.outcome import BY_RULE
from approvals.policy.requirements import Requirements

PERIODS = (7, 30, 90)  # days
LONGEST = 200  # characters of a name
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


@dataclass(frozen=True, kw_only=True)
class InsightFilters:
    """The filters in an address; junk is ignored. The second half is the part that one figure counts."""

    days: int = 30
    team: int = 0
    agent: str = ""
    policy: str = ""
    risk: str = ""

    kind: str = ""  # of the outcome
    within: str = ""  # one of figures.SPANS
    day: str = ""  # on which the gate closed, in the reader's zone: YYYY-MM-DD
    field: str = ""  # that people edited, a JSON Pointer with * for places in a list
    rule: str = ""  # that approved by itself, or would have
    sample: bool = False  # of a rule's gates, those that people decided
    person: int = 0  # who decided

    @classmethod
    def from_query(cls, sent: Mapping[str, Any]) -> Self:
        """Read the filters of an address."""
        values = {name: str(sent.get(name, "")).strip()[:LONGEST] for name in asdict(cls())}
        days = _number(values["days"])
        return cls(
            days=days if days in PERIODS else cls.days,
            team=_number(values["team"]),
            agent=values["agent"],
            policy=values["policy"],
            risk=values["risk"] if values["risk"] in Gate.Risk.values else "",
            kind=values["kind"] if values["kind"] in Outcome.Kind.values else "",
            within=values["within"],
            day=values["day"] if _is_day(values["day"]) else "",
            field=values["field"],
            rule=values["rule"],
            sample=values["sample"] == "True",
            person=_number(values["person"]),
        )

    @property
    def whole(self) -> InsightFilters:
        """Return the filters of the page, without the part of one figure."""
        return replace(self, kind="", within="", day="", field="", rule="", sample=False, person=0)

    @property
    def filtered(self) -> bool:
        """Tell whether anything but the period is chosen."""
        return self.whole != InsightFilters(days=self.days)

    @property
    def first_day(self) -> date:
        """Return the first day of the period, in the reader's zone; the last is today."""
        return timezone.localdate() - timedelta(days=self.days - 1)

    @property
    def since(self) -> datetime:
        """Return the moment at which the period begins."""
        return timezone.make_aware(datetime.combine(self.first_day, time.min))

    def query(self, **part: Any) -> str:
        """Write the filters as an address's query, with the part of one figure."""
        values = asdict(replace(self, **part))
        return urlencode({name: value for name, value in values.items() if value})


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


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
    with connection.cursor() as cursor:
        cursor.execute(_CLOSED.format(conditions=filter_conditions(wanted)), filter_parameters(teams, wanted))
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
        "teams": [team for team in teams if wanted.team in (0, team)], "since": wanted.since,
        "most": MOST + 1, "risk": wanted.risk, "policy": wanted.policy, "agent": wanted.agent,
    }  # fmt: skip
