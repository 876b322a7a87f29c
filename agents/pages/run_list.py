"""The list of runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from operator import itemgetter
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib.auth.models import User
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Count, Exists, IntegerField, OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce, JSONObject
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.dateparse import parse_date

from agents.access import is_fragment
from agents.models import Effect, Wait
from agents.pages.run import head as page_head
from agents.pages.run.facts import holds_run
from agents.pages.run.offered_moves import parse_number
from agents.runs import query
from agents.runs.query import RunFilters, starter_name
from approvals.live import page_frame
from approvals.models import Gate
from approvals.views.access import private_get
from checkpoints.models import Hold, Plan, Run
from checkpoints.runs.plans import spec_of

PAGE = 40
PLANS = 500  # the newest, whose agents and versions the filter offers
WORDS = 200  # characters
FEW = 3  # open gates of a run that are named
WAITS = "mine"  # among the statuses: those that wait for the reader's own decision
STATUSES = (("", "All"), (WAITS, "Waiting for me"), *((status.value, status.label) for status in Run.Status))


@dataclass(frozen=True, slots=True)
class Address:
    """The filters of the list, and their form in the address."""

    wanted: RunFilters
    by: str = ""  # the name of the account, as it was typed

    def query(self, **changed: object) -> str:
        """Return the filters as a query string, with `changed` set over them; empty without filters."""
        wanted = self.wanted
        values: dict[str, object] = {
            "status": WAITS if wanted.waits else wanted.status, "agent": wanted.agent, "version": wanted.version,
            "team": wanted.team, "by": self.by, "q": wanted.words, "since": wanted.since, "until": wanted.until,
            "forks_of": wanted.forks_of, "thread": wanted.thread, "before": wanted.before,
        } | changed  # fmt: skip
        text = urlencode({name: value for name, value in values.items() if value})
        return f"?{text}" if text else ""


@private_get
def page(request: HttpRequest) -> HttpResponse:
    """Show the reader's teams' runs, newest first; `?before=` names the run to continue below, the rest filters."""
    context = listing(request)
    return render(request, "runs/list/list.html" if is_fragment(request) else "runs/list/page.html", context)


def address_of(request: HttpRequest) -> Address:
    """Return the filters in the address; junk is ignored."""
    values = {name: request.GET.get(name, "").strip() for name in request.GET}
    status, by = values.get("status", ""), values.get("by", "")[:150]
    starter = User.objects.filter(username=by).values_list("pk", flat=True).first() if by else 0
    agent = values.get("agent", "")[:100]
    wanted = RunFilters(
        status=status if status in Run.Status.values else "",
        waits=status == WAITS,
        agent=agent,
        version=values.get("version", "")[:40] if agent else "",
        team=parse_number(values.get("team", "")),
        by=-1 if starter is None else starter,  # no such account, so no runs
        words=values.get("q", "")[:WORDS],
        since=day(values.get("since", "")),
        until=day(values.get("until", "")),
        thread=values.get("thread", "")[:200],
        forks_of=parse_number(values.get("forks_of", "").removeprefix("R-")),
        before=parse_number(values.get("before", "")),
        upto=parse_number(values.get("upto", "")),
    )
    return Address(wanted, by)


def day(text: str) -> date | None:
    """Parse a form's day; None for anything else."""
    try:
        return parse_date(text)
    except ValueError:
        return None


def listing(request: HttpRequest) -> dict[str, Any]:
    """Return the context of runs/list/list.html and runs/list/page.html."""
    asked, frame = address_of(request), page_frame.of(request)
    teams = frame.reach.teams if frame else {}
    found = query.ids(asked.wanted, teams=list(teams), most=PAGE + 1, waiting=frame.queue if frame else ())
    runs = annotate_runs(Run.objects.filter(pk__in=found[:PAGE])).in_bulk()
    counts = query.counts(list(teams))
    first, known = max(found, default=0), versions_by_agent(list(teams))
    return {
        "rows": [row_of(runs[pk]) for pk in found[:PAGE] if pk in runs],
        "asked": asked,
        "wanted": asked.wanted,
        "here": asked.query(upto=asked.wanted.upto or first),
        "top": asked.query(before=0),
        "first": first,
        "next": asked.query(before=found[PAGE - 1]) if len(found) > PAGE else "",
        "clear": Address(replace(RunFilters(), status=asked.wanted.status, waits=asked.wanted.waits)).query(),
        "filtered": asked.wanted.filtered,
        "any": bool(found) or any(counts.values()),
        "statuses": [
            {
                "label": label,
                "query": asked.query(status=value, before=0),
                "count": frame.waiting if value == WAITS and frame else counts.get(value),
                "current": value == (WAITS if asked.wanted.waits else asked.wanted.status),
            }
            for value, label in STATUSES
        ],
        "teams": teams.items(),
        "agents": known,
        "versions": known.get(asked.wanted.agent, ()),
    }


def versions_by_agent(teams: list[int]) -> dict[str, list[str]]:
    """Map the agents of these teams' runs, by name, to their versions, the newest first; of PLANS plans."""
    seen = Plan.objects.of_teams(teams)
    found: dict[str, list[str]] = {}
    for agent, version in sorted(seen.order_by("-pk").values_list("agent", "version")[:PLANS], key=itemgetter(0)):
        versions = found.setdefault(agent, [])
        if version not in versions:
            versions.append(version)
    return found


def annotate_runs(runs: QuerySet[Run]) -> QuerySet[Run]:
    """Annotate runs with everything that a row shows."""
    asked = Gate.objects.filter(run=OuterRef("pk"), status=Gate.Status.OPEN).order_by("pk")
    waited = Wait.objects.unmet().filter(run=OuterRef("pk"), step=OuterRef("next_step"), head=OuterRef("head"))
    return runs.select_related("plan", "team", "started_by").annotate(
        asking=ArraySubquery(asked.values(one=JSONObject(step="step", title="title", base="checkpoint"))[:FEW]),
        waiting_itself=Exists(waited),
        asked=_number(Gate.objects.filter(run=OuterRef("pk"))),
        doubts=_number(Effect.objects.filter(run=OuterRef("pk"), status__in=("intended", "unknown"))),
        left=_number(Hold.objects.filter(run=OuterRef("pk"), kind=Hold.Kind.EFFECT, freed_at__isnull=True)),
    )


def _number(rows: QuerySet[Any]) -> Coalesce:
    counted = rows.order_by().values("run").annotate(number=Count("pk")).values("number")
    return Coalesce(Subquery(counted, output_field=IntegerField()), Value(0))


def row_of(run: Any) -> dict[str, Any]:
    """Return one row: the run, its status word, the gate that it waits at and the number of its unsettled effects."""
    head, waits = run.head.hex if run.head else "", bool(run.waiting_itself or run.awaited)
    asking = [item for item in run.asking if holds_run(head, UUID(item["base"]).hex, waits=waits)]
    return {
        "run": run,
        "gate": next(iter(asking), None),
        "status": page_head.status(run, [item["step"] for item in asking], spec_of(run.plan).title_of),
        "starter": starter_name(run),
        "unsettled": run.doubts + run.left,
    }
