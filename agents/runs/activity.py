"""The activity of one run, read backwards along an index, a page at a time: of one family, or by words.

A page searches at most LOOKED events; if that was not enough it returns the place to continue from,
so it costs the same however long the run is and however rare the matches are. Saved checkpoints come from their
own rows: there are so many of them that no index of the events holds theirs.

Also here: statistics of agents' runs, for one person's teams: figures over the newest runs and gates alone.

They cover the last thirty days, and at most a thousand runs of an agent: what a page can read at any size. A
figure over all time would say less about the agent of today. Runs that are due and that no worker takes are
reported too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from django.db import connection
from django.db.models import Q

from approvals.audit import event_words
from approvals.audit.event_words import ROUTINE, Happening
from approvals.insights.figures import compute_quantile, count_by_span
from checkpoints.audit.filters import AuditFilters
from checkpoints.models import Checkpoint, Event, Run
from checkpoints.runs.plans import spec_of
from checkpoints.values.canonical_json import decode_canonical

PAGE = 20
LOOKED = 2_000
SAVES = "saves"
EVERY = "all"
FAMILIES = (
    ("", "What matters"),
    ("decisions", "Decisions"),
    ("effects", "Effects"),
    ("gates", "Gates"),
    ("people", "People"),
    (SAVES, "Saves"),
    (EVERY, "Everything"),
)
_KINDS = {
    "decisions": Q(kind__startswith="decision.")
    | Q(kind__in=("gate.decided", "gate.edited", "gate.lapsed", "gate.undone")),
    "effects": Q(kind__startswith="effect."),
    "gates": Q(kind__startswith="gate."),
    "people": Q(actor__startswith="user:"),
    "": ~Q(kind__in=ROUTINE),
}


@dataclass(frozen=True, slots=True)
class ActivityFilters:
    """The filters: a family, words, and the place to continue below (an event's id; of saves a number); 0: none."""

    family: str = ""
    words: str = ""
    before: int = 0

    @property
    def label(self) -> str:
        """Return the label of the family."""
        return str(dict(FAMILIES)[self.family])

    def query(self, **more: object) -> str:
        """Return the filters as a query string, with `more` set over them; empty without filters."""
        asked = {"family": self.family, "words": self.words, "before": self.before} | more
        result = urlencode({name: value for name, value in asked.items() if value})
        return f"?{result}" if result else ""


@dataclass(frozen=True, slots=True)
class ActivityPage:
    """A page of activity, the newest first, and the start of the next page; 0 if there is none."""

    happenings: Sequence[Happening]
    next: int = 0


def page(run: Run, asked: ActivityFilters) -> ActivityPage:
    """Return the newest matches, or those below a place. At most two statements."""
    if asked.family == SAVES:
        return _saves(run, asked)
    own = Event.objects.sealable().filter(run_id=run.pk).order_by("-id")
    own = own.filter(pk__lt=asked.before) if asked.before else own
    looked = list(own.values_list("pk", flat=True)[: LOOKED + 1])
    fits = Event.objects.filter(pk__in=looked[:LOOKED]).filter(_KINDS.get(asked.family, Q()))
    found = list(AuditFilters(words=asked.words).matching(fits).select_related("words").order_by("-id")[: PAGE + 1])
    return of_events(found, run, next=looked[LOOKED - 1] if len(looked) > LOOKED else 0)


def of_events(events: Sequence[Event], run: Run, *, next: int = 0) -> ActivityPage:
    """Make a page of these events of a run, which may be one more than it holds; `next` if there is more to search."""
    shown, titles = events[:PAGE], spec_of(run.plan).titles
    return ActivityPage([happening(event, titles) for event in shown], shown[-1].pk if len(events) > PAGE else next)


def _saves(run: Run, asked: ActivityFilters) -> ActivityPage:
    """Return the checkpoints of a run. Words are searched in the names of their steps and kinds."""
    own = Checkpoint.objects.filter(run=run).order_by("-seq")
    own = own.filter(seq__lt=asked.before) if asked.before else own
    rows = list(own.values_list("seq", "at", "kind", "step")[: LOOKED if asked.words else PAGE + 1])
    words = asked.words.lower().split()
    found = [row for row in rows if all(word in f"{row[2]} {row[3]}".lower() for word in words)]
    lines = [_saved(run, *row) for row in found[:PAGE]]
    if len(found) > PAGE:
        return ActivityPage(lines, found[PAGE - 1][0])
    return ActivityPage(lines, rows[-1][0] if asked.words and len(rows) == LOOKED else 0)


def _saved(run: Run, seq: int, at: object, kind: str, step: str) -> Happening:
    title = spec_of(run.plan).title_of(step)
    if not step:
        words = f"saved checkpoint {seq} ({kind})"
    elif kind in ("step", step):
        words = f"saved checkpoint {seq} after “{title}”"
    else:
        words = f"saved checkpoint {seq} after “{title}” ({kind})"
    return Happening(at, "checkpoint.saved", run.plan.agent, words)  # type: ignore[arg-type]


def happening(event: Event, titles: Mapping[str, str]) -> Happening:
    """Put one event in words."""
    words = getattr(event, "words", None)
    return event_words.tell(
        at=event.at,
        kind=event.kind,
        who=event.actor_name or event.actor,
        data=decode_canonical(bytes(event.data)),
        text=bytes(words.text).decode(errors="replace") if words else "",
        titles=titles,
    )


LOOKED_AT = 1000  # the newest runs of an agent
WINDOW = timedelta(days=30)  # in which a run ended, or a gate was closed
PATIENCE = timedelta(seconds=60)  # how long a run may be due before it counts as not taken

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
    """Figures over the newest runs of an agent; times are None if no gate was decided."""

    statuses: Mapping[str, int] = field(default_factory=dict)  # those that ended within WINDOW, and all that live
    decided: int = 0
    expired: int = 0
    withdrawn: int = 0
    half: timedelta | None = None  # the median time to a decision
    most: timedelta | None = None  # the 90th percentile
    within: Mapping[str, int] = field(default_factory=dict)  # decided gates, by approvals.insights.figures.SPANS
    due: Mapping[int, timedelta] = field(default_factory=dict)  # plan -> how long a run of it has been due

    @property
    def ended(self) -> int:
        """Count the runs that have ended."""
        return sum(self.statuses.get(item, 0) for item in ("completed", "failed", "cancelled"))

    @property
    def success(self) -> int | None:
        """Return the percentage of completed runs among those that ended; None if none has."""
        return round(100 * self.statuses["completed"] / self.ended) if self.ended else None

    @property
    def any(self) -> bool:
        """Tell whether there is a run."""
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
    """Compute figures from rows of ("run" or "gate", plan, status, seconds, number)."""
    runs = [row[1:] for row in rows if row[0] == "run"]
    closed = [(status, seconds) for what, _, status, seconds, _ in rows if what == "gate"]
    lines = [status for status, _ in closed]
    statuses = dict.fromkeys(Run.Status.values, 0)
    waited = sorted(seconds for status, seconds in closed if status == "decided")
    due: dict[int, timedelta] = {}
    for plan, status, seconds, number in runs:
        statuses[status] += number
        if seconds is not None and seconds > PATIENCE.total_seconds():
            due[plan] = max(due.get(plan, timedelta(0)), timedelta(seconds=seconds))
    return AgentFigures(
        statuses=statuses,
        decided=lines.count("decided"),
        expired=lines.count("expired"),
        withdrawn=lines.count("withdrawn"),
        half=compute_quantile(waited, 0.5),
        most=compute_quantile(waited, 0.9),
        within=count_by_span(waited),
        due=due,
    )
