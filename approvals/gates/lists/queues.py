"""Queues of gates: those that wait for somebody's decision, those they may see, those that were decided.

A queue may hold a handful out of a hundred thousand open gates, or half of them. Either way it is read along an index,
a few rows of each policy or team that the reader has, which are then put in order: the cost grows with the rows shown,
not with the gates that exist. One policy belongs to one team, and so do the gates opened under it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from django.contrib.auth.models import Group
from django.db import connection
from django.db.models import Exists, F, OuterRef, QuerySet, Subquery

from approvals.models import Decision, Gate, GateClaim, Policy, Snooze
from approvals.models.assignments.claim import holders
from approvals.policy import separation
from checkpoints.access import token_scope
from checkpoints.access.permissions import DECIDE_GATE, VIEW_RUN, teams_granting, teams_where, teams_with
from checkpoints.postgresql.capped_count import MOST, Capped
from checkpoints.postgresql.prepared_rows import OneOf, prepared_statement, type_numbers
from checkpoints.postgresql.sql import number_parameters, run_sql

from .queue_filters import COLUMNS, NEWEST, SAID_LAST, SORTS, URGENT, QueueFilters

MINE, GROUPS, ALL = "mine", "groups", "all"  # open: those that wait for the reader, those of their groups, all they see
DECIDED = "decided"
MINE_DECIDED = "mine_decided"  # decided gates that the reader could have decided
MINE_HELD = "mine_held"  # gates that the reader could decide, with a decision that may still be undone
BY_ME = "by_me"  # gates on which the reader decided, the last one first
CLAIMED = "claimed"  # open gates that the reader is on
SNOOZED = "snoozed"  # open gates that the reader put off
# Queue of open gates -> the reader's own rows that lead to them.
PERSONAL = {
    CLAIMED: """
      FROM approvals_gateclaim p JOIN approvals_gate g ON g.id = p.gate_id
      WHERE p.user_id = %s AND p.until > statement_timestamp()""",
    SNOOZED: """
      FROM approvals_snooze p JOIN approvals_gate g ON g.id = p.gate_id
      WHERE p.user_id = %s AND p.until > statement_timestamp()""",
}
CLOSED = (DECIDED, MINE_DECIDED)

NAMED = 300  # gates whose agents are offered in the filter

OPEN = "g.status = 'open'"
_CLOSED = "g.status <> 'open'"
MAY = f" AND NOT {separation.APART}"  # `s` is the policy that the row is read for
# For somebody who is away and not apart, by whoever does not decide there in their own name: what
# approvals_gate_access says of one gate, turned round, since a list asks it of thousands. What is lent is read once for
# all gates. The place is for LENT_ASKED, where the gate must wait for a vote by that authority.
_WITHIN = """(cardinality(lent.teams) = 0 OR policy.team_id = ANY(lent.teams))
      AND (cardinality(lent.policies) = 0 OR policy.name = ANY(lent.policies))"""
_OWN_TEAMS = f"ARRAY{teams_with('%s', DECIDE_GATE)}::bigint[]"
FOR_OTHERS = f"""
  AND (NOT s.lent OR NOT g.policy_id = ANY(ARRAY(
      SELECT r.policy_id FROM approvals_reviewing r WHERE r.team_id = ANY({_OWN_TEAMS})
      UNION ALL SELECT n.policy_id FROM approvals_policy_people n WHERE n.user_id = %s)::bigint[])
    AND NOT EXISTS (
      SELECT FROM approvals_addedteam a WHERE a.gate_id = g.id AND a.team_id = ANY({_OWN_TEAMS}))
    AND EXISTS (
    WITH given AS MATERIALIZED (
      SELECT person_id, team_id, teams, policies FROM approvals_lent WHERE delegate_id = %s),
    by_policy AS MATERIALIZED (
      SELECT policy.id AS policy_id, lent.person_id, lent.team_id FROM given lent
      JOIN approvals_reviewing r ON r.team_id = lent.team_id
      JOIN approvals_policy policy ON policy.id = r.policy_id AND {_WITHIN}
      UNION ALL SELECT policy.id, lent.person_id, NULL FROM approvals_lending lent
      JOIN approvals_policy_people named ON named.user_id = lent.person_id
      JOIN approvals_policy policy ON policy.id = named.policy_id AND {_WITHIN}
      WHERE lent.delegate_id = %s)
    SELECT FROM (
      SELECT lent.person_id, lent.team_id FROM by_policy lent WHERE lent.policy_id = g.policy_id
      UNION ALL SELECT lent.person_id, lent.team_id FROM approvals_addedteam a
      JOIN given lent ON lent.team_id = a.team_id JOIN approvals_policy policy ON policy.id = g.policy_id AND {_WITHIN}
      WHERE a.gate_id = g.id) lent
    WHERE NOT {separation.APART.replace("%s", "lent.person_id")}{{}}))"""  # noqa: S608
LENT_ASKED = """
      AND (cardinality(g.awaits) = 0 OR coalesce(lent.team_id, -lent.person_id) = ANY(g.awaits) OR EXISTS (
        SELECT FROM approvals_addedteam added WHERE added.gate_id = g.id AND added.team_id = lent.team_id))
      AND NOT EXISTS (
        SELECT FROM approvals_decision d JOIN approvals_proposal o ON o.id = d.proposal_id
        WHERE d.gate_id = g.id AND coalesce(d.on_behalf_of_id, d.user_id) = lent.person_id AND d.counts
          AND o.number = g.proposal)"""
# Of a gate with roles, in their own name only people who are asked now, see approvals.policy.tally.
ASKED = f"""
  AND (s.lent OR cardinality(g.awaits) = 0
    OR g.awaits && (ARRAY{teams_with("%s", DECIDE_GATE)}::bigint[] || -(%s::bigint)))
"""
WAITS = """
  AND g.settles_at IS NULL AND (g.deadline IS NULL OR g.deadline > statement_timestamp())
  AND NOT EXISTS (
    SELECT FROM approvals_decision d JOIN approvals_proposal o ON o.id = d.proposal_id
    WHERE d.gate_id = g.id AND %s IN (d.user_id, d.on_behalf_of_id) AND d.counts AND o.number = g.proposal)
  AND NOT EXISTS (
    SELECT FROM approvals_snooze z WHERE z.gate_id = g.id AND z.user_id = %s AND z.until > statement_timestamp())
"""
_OF_READER = {MINE: WAITS, MINE_DECIDED: "", MINE_HELD: " AND g.settles_at IS NOT NULL"}
_AGENTS = """
SELECT DISTINCT p.agent FROM ({}) q JOIN approvals_gate g ON g.id = q.id
JOIN checkpoints_run r ON r.id = g.run_id JOIN checkpoints_plan p ON p.id = r.plan_id ORDER BY p.agent
"""
_AS_JSON = "SELECT json_build_array(id, lent) FROM ({}) added(id, lent)"
# What a row shows. A plan's body is longer than all the rest together, and most gates of a list share one.
_SHOWN = (
    "run", "team", "status", "kind", "title", "risk", "card", "proposal", "attempt", "deadline", "opened_at",
    "closed_at", "awaits", "settles_at", "settles_as", "run__lineage", "run__status", "run__plan__agent",
    "run__plan__external", "step", "amount_currency", "amount_value", "policy__bulk_risk",
)  # fmt: skip
_ADDED_TEAMS = """
SELECT own.id, false FROM ({}) own(id) WHERE EXISTS (SELECT FROM approvals_addedteam a WHERE a.team_id = own.id)
UNION SELECT lent.team_id, true FROM approvals_lent lent
WHERE lent.delegate_id = %s AND EXISTS (SELECT FROM approvals_addedteam a WHERE a.team_id = lent.team_id)
"""
# The first gates of each policy or team, along the index of its gates in that order.
_STRETCH = """(
SELECT q.* FROM unnest((SELECT %s::bigint[]), (SELECT %s::boolean[]), (SELECT %s::boolean[])) s(id, separation, lent)
CROSS JOIN LATERAL (
  SELECT {columns} FROM approvals_gate g WHERE g.{where} = s.id AND {which}{condition}
  ORDER BY {order} LIMIT {most}) q)"""
# Those of each team that was added to gates' reviewers: few, so they are read through the rows that add it.
_ADDED_STRETCH = """(
SELECT q.* FROM unnest((SELECT %s::bigint[]), (SELECT %s::boolean[])) t(id, lent) CROSS JOIN LATERAL (
  SELECT {columns} FROM approvals_addedteam a
  JOIN approvals_gate g ON g.id = a.gate_id AND g.team_id = coalesce(%s, g.team_id)
  JOIN LATERAL (SELECT p.separation, t.lent FROM approvals_policy p WHERE p.id = g.policy_id) s ON true
  WHERE a.team_id = t.id AND {where} AND {which}{condition}
  ORDER BY {order} LIMIT {most}) q)"""
_SEEN = """(g.team_id = ANY(%s::bigint[]) OR g.policy_id = ANY(%s::bigint[])
  OR EXISTS (SELECT FROM approvals_addedteam a WHERE a.gate_id = g.id AND a.team_id = ANY(%s::bigint[])))"""
# The gates to which rows of the reader's own lead, as far as they still see them.
_OWN = f"""(
SELECT {{columns}} {{rows}} AND {{which}} AND {_SEEN}{{condition}}
ORDER BY {{order}} LIMIT {{most}})"""
_SAID = f"""(
SELECT {{columns}}, d.id AS said FROM approvals_decision d JOIN approvals_gate g ON g.id = d.gate_id
WHERE d.user_id = %s AND NOT EXISTS (
  SELECT FROM approvals_decision n WHERE n.gate_id = d.gate_id AND n.user_id = d.user_id AND n.id > d.id)
  AND {_SEEN}{{condition}}
ORDER BY {{order}} LIMIT {{most}})"""  # noqa: S608 - constants


@dataclass(frozen=True, kw_only=True)
class ReaderReach:
    """A person's reach: the teams whose gates they see, and the policies under which they decide."""

    user: int
    teams: Mapping[int, str]  # their names by id
    policies: tuple[tuple[int, int, bool], ...]  # (id, team, separation)
    lent: tuple[tuple[int, int, bool], ...] = ()  # the same, of those under which they decide for who is away
    added: tuple[int, ...] = ()  # teams of theirs that were added to gates
    lent_added: tuple[int, ...] = ()  # such teams in which they decide for who is away
    only: int | None = None  # the one team in whose gates their token lets them

    @classmethod
    def of(cls, user: Any) -> ReaderReach:
        """Read a person's reach as it is now, in four statements; every queue of one page shares it."""
        columns = ("pk", "team_id", "separation")
        teams, values = added_teams(user)
        with connection.cursor() as cursor:
            cursor.execute(teams, values)
            added = cursor.fetchall()
        return cls(
            user=user.pk,
            teams=dict(seen_by(user).values_list("pk", "name")),
            policies=tuple(Policy.objects.decided_by(user).values_list(*columns)),
            lent=tuple(Policy.objects.lent_to(user).values_list(*columns)),
            added=tuple(team for team, lent in added if not lent),
            lent_added=tuple(team for team, lent in added if lent),
            only=token_scope.bounds_of(user).team,
        )

    @property
    def decides(self) -> bool:
        """Tell whether they may decide any gates, in their own name or for somebody who is away."""
        return bool(self.policies or self.lent or self.added or self.lent_added)

    def ids(self, queue: str, *, most: int, wanted: QueueFilters | None = None) -> list[int]:
        """List the ids of the first `most` gates of a queue: the most urgent first, or the latest closed ones."""
        wanted = wanted or QueueFilters()
        return [each for (each,) in _rows(*self._select(queue, most, wanted), of=[wanted])]

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
        *numbers, agents = _row(columns, [*(values for _, values in selects), last], of=[each for _, each in counted])
        counts = [Capped(min(number, MOST), number > MOST) for number in numbers]
        return dict(zip(counted, counts, strict=True)), agents

    def gates(self, queue: str, *, most: int, wanted: QueueFilters | None = None) -> list[Gate]:
        """List the gates of `ids`, in its order, with what a row shows of each; two statements."""
        return self.lists((queue, most, wanted or QueueFilters()))[0]

    def lists(self, *asked: tuple[str, int, QueueFilters]) -> list[list[Gate]]:
        """List for each (queue, most, filters) what `gates` does, as of one moment; two statements for all."""
        selects = [self._select(*each) for each in asked]
        columns = [f"ARRAY({sql})" for sql, _ in selects]
        orders = _row(columns, [values for _, values in selects], of=[wanted for *_, wanted in asked])
        every = list(chain.from_iterable(orders))
        found = {gate.pk: gate for gate in self.named(every)}
        return [[found[each] for each in order if each in found] for order in orders]

    def named(self, ids: Sequence[int]) -> list[Gate]:
        """Return these gates, in this order, with what a row shows of each. One statement, none for no ids."""
        found = {gate.pk: gate for gate in _named(list(ids), self.user)} if ids else {}
        return [found[each] for each in ids if each in found]

    def _select(self, queue: str, most: int, wanted: QueueFilters) -> tuple[str, list[Any]]:
        """Return the SQL statement that selects the ids of a queue, and its values."""
        order = self._order(queue, wanted)
        parts: list[str] = []
        values: list[Any] = []
        for sql, named, own in self._stretches(queue):
            for condition, more in wanted.conditions(order):
                parts.append(sql.format(columns=COLUMNS, condition=condition, order=order, most=most, **named))
                values += [*own, *more]
        # A gate may be in several sources: of its team's, and of one that was added.
        together = (" UNION " if self.added or self.lent or self.lent_added else " UNION ALL ").join(parts)
        return f"SELECT id FROM ({together}) q ORDER BY {order} LIMIT {most}", values  # noqa: S608 - values apart

    @staticmethod
    def _order(queue: str, wanted: QueueFilters) -> str:
        if queue == BY_ME:
            return SAID_LAST
        return NEWEST if queue in CLOSED else SORTS.get(wanted.sort, URGENT)

    def _stretches(self, queue: str) -> list[tuple[str, dict[str, str], list[Any]]]:
        """Return the SQL of each part of a queue, what is filled into it, and its first values."""
        deciding = [pk for pk, *_ in (*self.policies, *self.lent)]
        seen = [list(self.teams), deciding, [*self.added, *self.lent_added]]
        if queue == BY_ME:
            return [(_SAID, {}, [self.user, *seen])]
        if queue in PERSONAL:
            return [(_OWN, {"rows": PERSONAL[queue], "which": OPEN}, [self.user, *seen])]
        return [self._stretch(queue, source) for source in self._sources(queue)]

    def _stretch(self, queue: str, source: _Source) -> tuple[str, dict[str, str], list[Any]]:
        closed = queue in CLOSED
        which = _CLOSED if closed else OPEN
        if queue in _OF_READER:
            which += MAY + (FOR_OTHERS.format(LENT_ASKED if queue == MINE else "") if source.lends else "")
            which += ASKED if queue == MINE and source.asked else ""
            which += _OF_READER[queue]
        who = [self.user] * which.count("%s")
        where = source.once if closed else source.where
        return source.stretch, {"where": where, "which": which}, [*source.values, *who]

    def _sources(self, queue: str) -> Iterator[_Source]:
        """Yield what the queue is read along."""
        mine = queue in _OF_READER or queue == GROUPS
        own = [each for each in self.policies if mine or each[1] not in self.teams]
        known = {pk for pk, *_ in own}  # in one's own name comes first
        lent = [each for each in self.lent if each[0] not in known and (mine or each[1] not in self.teams)]
        if not mine:
            teams = list(self.teams)
            yield _Source("team_id", [teams, [False] * len(teams), [False] * len(teams)])
        every = [*own, *lent]
        flags = [False] * len(own) + [True] * len(lent)
        yield _Source("policy_id", [[pk for pk, *_ in every], [each[2] for each in every], flags], lends=bool(lent))
        lent_added = [team for team in self.lent_added if team not in self.added]
        if added := [*self.added, *lent_added]:
            flags = [False] * len(self.added) + [True] * len(lent_added)
            yield _Source(
                "a.open", [added, flags, self.only], _ADDED_STRETCH, "NOT a.open", bool(lent_added), asked=False
            )


@dataclass(frozen=True)
class _Source:
    """A column, or rows, along which a queue is read: of open gates, and of closed ones where that differs."""

    where: str
    values: list[Any]
    stretch: str = _STRETCH
    where_closed: str = ""
    lends: bool = False  # whether some of it is read for somebody who is away
    asked: bool = True  # whether only those of a gate's roles are asked; a team that was added may fill any

    @property
    def once(self) -> str:
        return self.where_closed or self.where


def _row(columns: Collection[str], values: Collection[list[Any]], *, of: Collection[QueueFilters]) -> tuple[Any, ...]:
    return _rows(f"SELECT {', '.join(columns)}", list(chain.from_iterable(values)), of=of)[0]


def _rows(sql: str, values: Sequence[Any], *, of: Collection[QueueFilters]) -> list[tuple[Any, ...]]:
    """Run a statement over queues with these filters.

    Planning one takes longer than running it, so that its plan is kept: but not with words, which may be rare or
    frequent, and are then found along different indexes.
    """
    return run_sql(number_parameters(sql), list(map(type_numbers, values)), prepare=not any(each.words for each in of))


@prepared_statement
def _named(gates: Any, reader: Any) -> QuerySet[Gate]:
    mine = Decision.objects.filter(gate=OuterRef("pk"), user=reader, counts=True, proposal__number=OuterRef("proposal"))
    listed: QuerySet[Any] = Gate.objects.filter(OneOf(F("pk"), gates)).select_related("run__plan", "policy")
    put_off = Snooze.objects.running().filter(gate=OuterRef("pk"), user=reader)
    held_by_reader = GateClaim.objects.live().filter(gate=OuterRef("pk"), user=reader)
    claimed = listed.annotate(holder=holders("pk"), reader_holds=Exists(held_by_reader))
    marked: QuerySet[Gate] = claimed.annotate(reader_decided=Exists(mine)).only(*_SHOWN)
    marked = marked.annotate(snoozed_until=Subquery(put_off.values("until")))
    return marked


def seen_by(user: Any) -> QuerySet[Group]:
    """Return the teams whose gates a person sees, by name."""
    return teams_where(user, VIEW_RUN).order_by("name", "pk")


def added_teams(user: Any, *, as_json: bool = False) -> tuple[str, list[Any]]:
    """Return SQL for the teams that were added to gates and in which a person decides: (id, for who is away)."""
    own, values = teams_granting(user, DECIDE_GATE).query.sql_with_params()
    sql = _ADDED_TEAMS.format(own)
    return _AS_JSON.format(sql) if as_json else sql, [*values, user.pk]
