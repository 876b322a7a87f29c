"""The page of figures over the gates of the reader's teams, and the list of the gates that one figure counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from approvals.insights import backlog, closed_gates
from approvals.insights.closed_gates import PERIODS, CountedGate, InsightFilters
from approvals.insights.figures import (
    comparable_teams,
    count_by_person,
    count_edited_fields,
    measure_waits,
    select_part,
)
from approvals.live.page_frame import reach_of
from approvals.models import Gate, Outcome
from approvals.presentation import inbox
from approvals.presentation import insights as figures
from approvals.presentation.text import untrusted

from .access import number_in, private_get, reader_of
from .inbox import finish

SHOWN = 40  # gates of a list


@private_get
def page(request: HttpRequest) -> HttpResponse:
    """Show the figures; `?days=`, `?team=`, `?agent=`, `?policy=` and `?risk=` filter them."""
    wanted, user, teams = InsightFilters.from_query(request.GET).whole, reader_of(request), reach_of(request).teams
    closed = closed_gates.read(teams, wanted)
    rows, waiting = closed.rows, backlog.read(teams, wanted)
    took, ended = measure_waits(rows), Counter(row.kind for row in rows)
    compared = comparable_teams(user) & set(teams)
    context = {
        "wanted": wanted, "periods": PERIODS, "teams": teams, "risks": Gate.Risk.choices, "cut": closed.cut,
        "most": closed_gates.MOST, "took": took, "waiting": waiting, "expired": ended[Outcome.Kind.EXPIRED],
        "expired_at": figures.gates_at(wanted, kind=Outcome.Kind.EXPIRED),
        "agents": offered(rows, "agent", wanted.agent), "policies": offered(rows, "policy", wanted.policy),
        "figures": [
            figures.time_to_decision(rows, wanted),
            figures.by_day(rows, wanted),
            figures.backlog(waiting, wanted),
            figures.endings("agents", "Outcomes by agent", rows, figures.agent_of, wanted),
            figures.endings("policies", "Outcomes by policy", rows, figures.policy_of(teams), wanted),
            figures.endings("risks", "Outcomes by risk", rows, figures.risk_of, wanted),
            figures.edits(count_edited_fields(rows), wanted),
            figures.automatic(rows, wanted),
            figures.people(
                count_by_person(rows, reader=user.pk, teams=compared), wanted, compared=bool(compared),
                teams=", ".join(untrusted.plain(teams[each], limit=60) for each in sorted(compared)),
            ),
        ],
    }  # fmt: skip
    return render(request, "insights/page.html", context)


@private_get
def gates(request: HttpRequest) -> HttpResponse:
    """List the gates that one figure counts, newest first; `?page=` goes on."""
    wanted, user, reach = InsightFilters.from_query(request.GET), reader_of(request), reach_of(request)
    closed = closed_gates.read(reach.teams, wanted)
    found = counted(closed.rows, wanted, reader=user, teams=reach.teams)
    number = number_in(request.GET.get("page", "1"), 8)
    first = (0 if number is None else number - 1) * SHOWN
    shown = reach.named([row.id for row in found[max(first, 0) : max(first, 0) + SHOWN]])
    finish(shown)
    now = timezone.now()
    context = {
        "wanted": wanted, "rows": [inbox.row(gate, now=now) for gate in shown], "count": len(found),
        "cut": closed.cut, "most": closed_gates.MOST,
        "said": figures.said_of(wanted, teams=reach.teams, person=named(wanted.person)),
        "more": f"{wanted.query()}&page={first // SHOWN + 2}" if len(found) > first + SHOWN else "",
    }  # fmt: skip
    return render(request, "insights/gates.html", context)


def counted(
    rows: Collection[CountedGate], wanted: InsightFilters, *, reader: User, teams: Mapping[int, str]
) -> list[CountedGate]:
    """Keep the gates that the figure counts. 404 for a person whose figures the reader may not see."""
    found = select_part(rows, wanted)
    if wanted.field:
        edited = set(count_edited_fields(found).get(wanted.field, ()))
        found = [row for row in found if row.id in edited]
    if wanted.person:
        compared = comparable_teams(reader) & set(teams)
        decided = count_by_person(found, reader=reader.pk, teams=compared)
        theirs = next((each.gates for each in decided if each.user == wanted.person), None)
        if theirs is None and wanted.person != reader.pk:  # or the list would name any account by its number
            raise Http404("No such figure")
        found = [row for row in found if row.id in (theirs or ())]
    return found


def offered(rows: Collection[CountedGate], column: str, chosen: str) -> list[str]:
    """List the names in a column, for a filter."""
    return sorted({getattr(row, column) for row in rows} | ({chosen} - {""}))[:200]


def named(person: int) -> str:
    """Return the name of the person by whom a list is filtered."""
    user = User.objects.filter(pk=person).first() if person else None
    return untrusted.person(user) if user else ""
