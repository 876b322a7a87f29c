"""The list of runs: filtered, the newest first, a page at a time.

A person reads the runs of their teams; there may be a million of them, of which a page shows fifty. So the list is read
along an index, a page of each team (and of each plan, if filtered by agent), and these are merged: the
cost follows what is shown. Words are searched in the titles and in what gates show, in PostgreSQL's text indexes.

Also here: the agents that a reader may see: those whose runs they see, and those that they may start.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from django.db import connection
from django.http import HttpRequest

from agents.definition import registry
from agents.definition.registered import RegisteredAgent
from agents.definition.upcast import version_key
from approvals.gates.lists.queue_filters import MATCHES
from approvals.live import page_frame
from approvals.views.access import reader_of
from checkpoints.access import token_scope
from checkpoints.access.permissions import START_RUN, teams_where
from checkpoints.models import Plan, Run
from checkpoints.postgresql.capped_count import MOST, Capped
from checkpoints.postgresql.text_search import looked_for
from checkpoints.runs.plans import spec_of

# The first rows of each team, along the index that fits the filters.
_RUNS = """
SELECT q.id FROM unnest(%s::bigint[]) t(id){} CROSS JOIN LATERAL (
  SELECT r.id FROM checkpoints_run r WHERE r.team_id = t.id{} ORDER BY r.id DESC LIMIT %s) q
ORDER BY q.id DESC LIMIT %s
"""
# Words in many titles fill a page among the newest runs; for rare words the text index is read
# first, which the planner would not do by itself: it cannot know how rare a prefix is.
_NEWEST = """
WITH r AS MATERIALIZED (
  SELECT q.* FROM unnest(%s::bigint[]) t(id){} CROSS JOIN LATERAL (
    SELECT r.* FROM checkpoints_run r WHERE r.team_id = t.id{} ORDER BY r.id DESC LIMIT %s) q)
SELECT r.id FROM r WHERE {} ORDER BY r.id DESC LIMIT %s
"""
_RARE = """
WITH r AS MATERIALIZED (SELECT * FROM checkpoints_run r WHERE {})
SELECT r.id FROM r CROSS JOIN unnest(%s::bigint[]) t(id){} WHERE r.team_id = t.id{} ORDER BY r.id DESC LIMIT %s
"""
_TITLE = "to_tsvector('simple'::regconfig, coalesce(r.title, '')) @@ to_tsquery('simple', %s)"
_GATE = f"({MATCHES} OR g.id = %s)"
_NEW = f"({_TITLE} OR r.id = %s OR EXISTS (SELECT FROM approvals_gate g WHERE g.run_id = r.id AND {_GATE}))"
_OLD = f"""r.id IN (
  SELECT r.id FROM checkpoints_run r WHERE {_TITLE} UNION SELECT %s
  UNION SELECT g.run_id FROM approvals_gate g WHERE {_GATE})"""  # noqa: S608 - constants
WALKED = 2_000  # newest runs of each team, in which words are searched first
_PLANS = " CROSS JOIN unnest(%s::bigint[]) p(id)"
_COUNT = """
(SELECT count(*) FROM (SELECT FROM unnest(%s::bigint[]) t(id) CROSS JOIN LATERAL (
  SELECT FROM checkpoints_run r WHERE r.team_id = t.id AND r.status = %s LIMIT %s) q LIMIT %s) counted)
"""


@dataclass(frozen=True, kw_only=True)
class RunFilters:
    """The filters of a list of runs; an empty value matches everything."""

    status: str = ""
    waits: bool = False  # for the reader's own decision
    agent: str = ""
    version: str = ""
    team: int = 0
    by: int = 0  # the id of the account that started it
    words: str = ""  # prefixes of words in the title or in what its gates show; or its number or a gate's
    since: date | None = None  # days by the database's time zone, both included
    until: date | None = None
    thread: str = ""
    forks_of: int = 0
    before: int = 0  # the run above the first one
    upto: int = 0  # the newest that is listed, so that an open list gets nothing on top

    @property
    def filtered(self) -> bool:
        """Tell whether any filter but the status is set, on whichever page of the list."""
        return replace(self, status="", waits=False, before=0, upto=0) != RunFilters()


def ids(wanted: RunFilters, *, teams: Collection[int], most: int, waiting: Sequence[int] = ()) -> list[int]:
    """Return the ids of the first `most` runs, the newest first.

    `teams` are those whose runs the reader may see, `waiting` the gates that wait for their decision.
    """
    asked = [team for team in teams if wanted.team in (0, team)]
    conditions, values = _conditions(wanted, waiting)
    plans, of_plans = "", []
    if wanted.agent:
        named = Plan.objects.filter(agent=wanted.agent)
        named = named.filter(version=wanted.version) if wanted.version else named
        plans, of_plans = _PLANS, [list(named.values_list("pk", flat=True))]
        conditions.append("r.plan_id = p.id")
    which = "".join(f" AND {condition}" for condition in conditions)
    words, gate, run = looked_for(wanted.words)
    if not (words or gate or run):
        return _read_ids(_RUNS.format(plans, which), [asked, *of_plans, *values, most, most])
    found_by = [words, run, words, gate]
    newest = _read_ids(_NEWEST.format(plans, which, _NEW), [asked, *of_plans, *values, WALKED, *found_by, most])
    if len(newest) == most:
        return newest
    return _read_ids(_RARE.format(_OLD, plans, which), [*found_by, asked, *of_plans, *values, most])


def _read_ids(sql: str, values: list[Any]) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return [row[0] for row in cursor.fetchall()]


def _conditions(wanted: RunFilters, waiting: Sequence[int]) -> tuple[list[str], list[Any]]:
    """Return the conditions as SQL on a run `r`, with the values."""
    asked: list[tuple[object, str, Any]] = [
        (wanted.status, "r.status = %s", wanted.status),
        (wanted.waits, "r.id IN (SELECT run_id FROM approvals_gate WHERE id = ANY(%s))", list(waiting)),
        (wanted.by, "r.started_by_id = %s", wanted.by),
        (wanted.since, "r.created_at >= %s::date", wanted.since),
        (wanted.until, "r.created_at < %s::date + 1", wanted.until),
        (wanted.forks_of, "r.forked_from IS NOT NULL AND r.lineage = (SELECT lineage"
         " FROM checkpoints_run WHERE id = %s)", wanted.forks_of),
        (wanted.thread, "r.thread = %s", wanted.thread),
        (wanted.before, "r.id < %s", wanted.before),
        (wanted.upto, "r.id <= %s", wanted.upto),
    ]  # fmt: skip
    chosen = [(sql, value) for item, sql, value in asked if item]
    return [sql for sql, _ in chosen], [value for _, value in chosen]


def counts(teams: Collection[int]) -> dict[str, Capped]:
    """Count the runs of these teams by status, up to MOST each; in one statement."""
    asked = [status.value for status in Run.Status]
    values = [value for status in asked for value in (list(teams), status, MOST + 1, MOST + 1)]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join([_COUNT] * len(asked))}", values)  # constants, values apart
        found = cursor.fetchone()
    return {status: Capped(min(item, MOST), item > MOST) for status, item in zip(asked, found, strict=True)}


def starter_name(run: Run) -> str:
    """Return the name of whoever started the run, as people know it."""
    if run.started_by:
        return run.started_by.get_full_name() or run.started_by.get_username()
    return "Holdpoint" if run.started_as == "system" else run.started_as.partition(":")[2] or run.started_as


@dataclass(frozen=True)
class KnownAgent:
    """One agent as the reader may see it: its stored plans, the newest first, and its code if it is deployed here."""

    name: str
    plans: list[Plan]
    here: RegisteredAgent | None

    @property
    def spec(self) -> Any:
        return self.here.spec if self.here else spec_of(self.plans[0])

    @property
    def lacks(self) -> str:
        """Return what has to be set up before a run of it can work; empty if nothing has."""
        return self.here.agent.lacks() if self.here else ""

    @property
    def external(self) -> bool:
        """Tell whether its code is elsewhere."""
        return self.here is None and self.plans[0].external

    @property
    def doc(self) -> str:
        """Return the first paragraph of its author's description."""
        return (self.here.agent.__doc__ or "").strip().partition("\n\n")[0] if self.here else ""


def known_to(request: HttpRequest, name: str = "") -> list[KnownAgent]:
    """Return the agents whose runs the reader sees, and those that they may start, by name."""
    reader, seen = reader_of(request), Plan.objects.of_teams(list(page_frame.reach_of(request).teams))
    stored: dict[str, list[Plan]] = {}
    for plan in (seen.filter(agent=name) if name else seen).order_by("-pk"):
        stored.setdefault(plan.agent, []).append(plan)
    here = _here() if stored or teams_where(reader, START_RUN).exists() else {}
    startable = here.keys() if teams_where(reader, START_RUN).exists() else ()
    only = {word for word in (name, token_scope.bounds_of(reader).agent) if word}
    names = sorted(item for item in {*stored, *startable} if only <= {item})
    return [KnownAgent(name, stored.get(name, []), here.get(name)) for name in names]


def _here() -> dict[str, RegisteredAgent]:
    """Map the name of each agent of this process to its newest version."""
    known = registry.agents()
    return {name: known[name, version] for name, version in sorted(known, key=lambda key: version_key(key[1]))}
