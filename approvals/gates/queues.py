"""Queues of gates: those that wait for somebody's decision, those they may see, those that were decided.

A queue may hold a handful out of a hundred thousand open gates, or half of them. Either way it is read along an index,
a few rows of each policy or team that the reader has, which are then put in order: the cost grows with the rows shown,
not with the gates that exist. One policy belongs to one team, and so do the gates opened under it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any

from django.contrib.auth.models import Group
from django.db import connection
from django.db.models import Exists, F, OuterRef, QuerySet

from approvals.models import Decision, Gate, Policy
from approvals.policy import separation
from checkpoints.access.permissions import DECIDE_GATE, VIEW_RUN, teams_where, teams_with
from checkpoints.postgresql.capped_count import MOST, Capped
from checkpoints.postgresql.prepared_rows import OneOf, prepared
from checkpoints.postgresql.text_search import looked_for

MINE, ALL, DECIDED = "mine", "all", "decided"
MINE_DECIDED = "mine_decided"  # decided gates that the reader could have decided
MINE_HELD = "mine_held"  # gates that the reader could decide, with a decision that may still be undone

MATCHES = "to_tsvector('simple'::regconfig, coalesce(g.terms, '')) @@ to_tsquery('simple', %s)"  # as the index has it
NAMED = 300  # gates whose agents are offered in the filter

_OPEN = "g.status = 'open'"
_CLOSED = "g.status <> 'open'"
_MAY = f" AND NOT {separation.APART}"  # `s` is the policy that the row is read for
# Of a gate with roles, only people who are asked now: see approvals.policy.tally.
_ASKED = f"""
  AND (cardinality(g.awaits) = 0 OR g.awaits && (ARRAY{teams_with("%s", DECIDE_GATE)}::bigint[] || -(%s::bigint)))
"""
_WAITS = (
    _ASKED
    + """
  AND g.settles_at IS NULL AND (g.deadline IS NULL OR g.deadline > statement_timestamp())
  AND NOT EXISTS (
    SELECT FROM approvals_decision d JOIN approvals_proposal o ON o.id = d.proposal_id
    WHERE d.gate_id = g.id AND d.user_id = %s AND d.counts AND o.number = g.proposal)
"""
)
_OWN = {MINE: _WAITS, MINE_DECIDED: "", MINE_HELD: " AND g.settles_at IS NOT NULL"}
_AGENTS = """
SELECT DISTINCT p.agent FROM ({}) q JOIN approvals_gate g ON g.id = q.id
JOIN checkpoints_run r ON r.id = g.run_id JOIN checkpoints_plan p ON p.id = r.plan_id ORDER BY p.agent
"""
# What a row shows. A plan's body is longer than all the rest together, and most gates of a list share one.
_SHOWN = (
    "run", "status", "kind", "title", "risk", "card", "proposal", "attempt", "deadline", "opened_at", "closed_at",
    "awaits", "settles_at", "settles_as", "run__lineage", "run__plan__agent", "run__plan__external",
)  # fmt: skip
_URGENT = "deadline, opened_at, id"
_NEWEST = "closed_at DESC, id DESC"

# The first gates of each policy or team, along the index of its gates in that order.
_STRETCH = """(
SELECT q.* FROM unnest(%s::bigint[], %s::boolean[]) s(id, separation) CROSS JOIN LATERAL (
  SELECT g.id, g.deadline, g.opened_at, g.closed_at FROM approvals_gate g WHERE g.{} = s.id AND {}{}
  ORDER BY {} LIMIT %s) q)"""
_WAITING = f"""
SELECT q.id FROM ({{}}) s(id, separation) CROSS JOIN LATERAL (
  SELECT g.id, g.deadline, g.opened_at FROM approvals_gate g WHERE g.policy_id = s.id AND {_OPEN}{_MAY}{_WAITS}
  ORDER BY {_URGENT} LIMIT %s) q
ORDER BY q.deadline, q.opened_at, q.id LIMIT %s
"""  # noqa: S608 - constants


@dataclass(frozen=True, kw_only=True)
class QueueFilters:
    """The filters of a queue."""

    risk: str = ""
    agent: str = ""
    words: str = ""  # beginnings of words that a row shows, or the number of the gate or of its run
    after: int = 0  # the id of the gate before the first one
    closed_within: float = 0  # seconds; 0 for any time
    due: datetime | None = None  # the latest deadline; None: no bound

    def conditions(self, order: str) -> list[tuple[str, list[Any]]]:
        """Return the filter as SQL on a gate `g`, with its parameters, for each stretch of the order that it takes."""
        condition, values = self._condition()
        if not self.after:
            return [(condition, values)]
        begins = [(f" AND {each}", [self.after] * each.count("%s")) for each in _AFTER[order]]  # not translated: SQL
        return [(condition + begin, values + more) for begin, more in begins]

    def _condition(self) -> tuple[str, list[Any]]:
        parts: list[str] = []
        values: list[Any] = []
        if self.risk:
            parts.append("g.risk = %s")
            values.append(self.risk)
        if self.agent:
            parts.append(
                "EXISTS (SELECT FROM checkpoints_run r JOIN checkpoints_plan p ON p.id = r.plan_id"
                " WHERE r.id = g.run_id AND p.agent = %s)"
            )
            values.append(self.agent)
        if self.words.strip():
            words, gate, run = looked_for(self.words)
            parts.append(f"({MATCHES} OR g.id = %s OR g.run_id = %s)")
            values += [words, gate, run]
        if self.due:
            parts.append("g.deadline <= %s")
            values.append(self.due)
        if self.closed_within:
            parts.append("g.closed_at >= statement_timestamp() - make_interval(secs => %s)")
            values.append(self.closed_within)
        return "".join(f" AND {part}" for part in parts), values


def _of_last(column: str) -> str:
    return f"(SELECT {column} FROM approvals_gate WHERE id = %s)"  # noqa: S608 - constants


def _unless_due(column: str, first: str) -> str:
    return _of_last(f"CASE WHEN deadline IS NULL THEN {column} ELSE {first} END")  # not translated: SQL


# Each begins in the index where the gate before stands: one value at a time, as no index serves a row of a subquery.
# Gates without a deadline come last, as a stretch of their own.
_AFTER = {
    _URGENT: [
        f"(g.deadline, g.opened_at, g.id) > ({_of_last('deadline')}, {_of_last('opened_at')}, {_of_last('id')})",
        "g.deadline IS NULL AND (g.opened_at, g.id) >"
        f" ({_unless_due('opened_at', repr('-infinity'))}, {_unless_due('id', '0')})",
    ],
    _NEWEST: [f"(g.closed_at, g.id) < ({_of_last('closed_at')}, {_of_last('id')})"],
}


@dataclass(frozen=True, kw_only=True)
class ReaderReach:
    """A person's reach: the teams whose gates they see, and the policies under which they decide."""

    user: int
    teams: Mapping[int, str]  # their names by id
    policies: tuple[tuple[int, int, bool], ...]  # (id, team, separation)

    @classmethod
    def of(cls, user: Any) -> ReaderReach:
        """Read a person's reach as it is now, in two statements; every queue of one page shares it."""
        return cls(
            user=user.pk,
            teams=dict(seen_by(user).values_list("pk", "name")),
            policies=tuple(Policy.objects.decided_by(user).values_list("pk", "team_id", "separation")),
        )

    def ids(self, queue: str, *, most: int, wanted: QueueFilters | None = None) -> list[int]:
        """List the ids of the first `most` gates of a queue: the most urgent first, or the latest closed ones."""
        sql, values = self._select(queue, most, wanted or QueueFilters())
        with connection.cursor() as cursor:
            cursor.execute(sql, values)
            return [row[0] for row in cursor.fetchall()]

    def figures(
        self, counted: Collection[tuple[str, QueueFilters]], *, agents_of: str
    ) -> tuple[dict[tuple[str, QueueFilters], Capped], list[str]]:
        """Count the gates of these queues up to `MOST`, and name the agents at the first `NAMED` gates of another.

        One statement for all of it.
        """
        selects = [self._select(queue, MOST + 1, wanted) for queue, wanted in counted]
        first, last = self._select(agents_of, NAMED, QueueFilters())
        columns = [f"(SELECT count(*) FROM ({sql}) q)" for sql, _ in selects]  # noqa: S608 - values apart
        columns.append(f"ARRAY({_AGENTS.format(first)})")
        *numbers, agents = _row(columns, [*(values for _, values in selects), last])
        counts = [Capped(min(number, MOST), number > MOST) for number in numbers]
        return dict(zip(counted, counts, strict=True)), agents

    def gates(self, queue: str, *, most: int, wanted: QueueFilters | None = None) -> list[Gate]:
        """List the gates of `ids`, in its order, with what a row shows of each; two statements."""
        return self.lists((queue, most, wanted or QueueFilters()))[0]

    def lists(self, *asked: tuple[str, int, QueueFilters]) -> list[list[Gate]]:
        """List for each (queue, most, filters) what `gates` does, as of one moment; two statements for all."""
        selects = [self._select(*each) for each in asked]
        orders = _row([f"ARRAY({sql})" for sql, _ in selects], [values for _, values in selects])
        every = list(chain.from_iterable(orders))
        found = {gate.pk: gate for gate in self.named(every)}
        return [[found[each] for each in order if each in found] for order in orders]

    def named(self, ids: Sequence[int]) -> list[Gate]:
        """Return these gates, in this order, with what a row shows of each. One statement, none for no ids."""
        found = {gate.pk: gate for gate in _named(list(ids), self.user)} if ids else {}
        return [found[each] for each in ids if each in found]

    def _select(self, queue: str, most: int, wanted: QueueFilters) -> tuple[str, list[Any]]:
        """Return the SQL statement that selects the ids of a queue, and its values."""
        closed, mine = queue in (DECIDED, MINE_DECIDED), queue in _OWN
        order = _NEWEST if closed else _URGENT
        which = (_CLOSED if closed else _OPEN) + (_MAY if mine else "") + _OWN.get(queue, "")
        who = [self.user] * which.count("%s")
        parts: list[str] = []
        values: list[Any] = []
        for column, owners, separate in self._sources(queue):
            for condition, more in wanted.conditions(order):
                parts.append(_STRETCH.format(column, which, condition, order))
                values += [owners, separate, *who, *more, most]
        together = " UNION ALL ".join(parts)
        return f"SELECT id FROM ({together}) q ORDER BY {order} LIMIT %s", [*values, most]  # noqa: S608 - values apart

    def _sources(self, queue: str) -> list[tuple[str, list[int], list[bool]]]:
        """Return (column, ids, separation) for each column along which the queue is read. No gate is in two of them."""
        mine = queue in _OWN
        policies = [(pk, separate) for pk, team, separate in self.policies if mine or team not in self.teams]
        by_policy = ("policy_id", [pk for pk, _ in policies], [separate for _, separate in policies])
        return [by_policy] if mine else [("team_id", list(self.teams), [False] * len(self.teams)), by_policy]


def _row(columns: Collection[str], values: Collection[list[Any]]) -> tuple[Any, ...]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(columns)}", list(chain.from_iterable(values)))
        row: tuple[Any, ...] = cursor.fetchone()
        return row


@prepared
def _named(gates: Any, reader: Any) -> QuerySet[Gate]:
    mine = Decision.objects.filter(gate=OuterRef("pk"), user=reader, counts=True, proposal__number=OuterRef("proposal"))
    listed: QuerySet[Any] = Gate.objects.filter(OneOf(F("pk"), gates)).select_related("run__plan")
    marked: QuerySet[Gate] = listed.annotate(reader_decided=Exists(mine)).only(*_SHOWN)
    return marked


def seen_by(user: Any) -> QuerySet[Group]:
    """Return the teams whose gates a person sees, by name."""
    return teams_where(user, VIEW_RUN).order_by("name", "pk")


def waiting_for(user: Any, most: int) -> tuple[str, list[Any]]:
    """Return SQL for the ids of the gates that wait for a person, ordered like `ReaderReach.ids`, without the reach."""
    policies, values = Policy.objects.decided_by(user).values_list("pk", "separation").query.sql_with_params()
    who = [user.pk] * (_MAY + _WAITS).count("%s")
    return _WAITING.format(policies), [*values, *who, most, most]
