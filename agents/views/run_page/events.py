"""The events of a run: on a page of their own, and as a part of the run's page that is reloaded."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from agents.queries.access import is_fragment, private, run_or_404
from agents.queries.run_story import RunScene
from agents.runs import activity
from agents.runs.activity import FAMILIES, ActivityFilters, ActivityPage
from checkpoints.models import Run

WORDS = 200  # characters


@require_safe
@private
def page(request: HttpRequest, run_id: int) -> HttpResponse:
    """Show the newest events of a run that match `?family=&words=`, or those before `?before=`."""
    run, asked = run_or_404(request, run_id), asked_of(request)
    context = context_of(run, asked, activity.page(run, asked))
    return render(request, "runs/events/list.html" if is_fragment(request) else "runs/events/page.html", context)


def asked_of(request: HttpRequest) -> ActivityFilters:
    """Return the filters in the address; junk is ignored."""
    family, before = request.GET.get("family", ""), request.GET.get("before", "")
    words = request.GET.get("words", "").strip()[:WORDS]
    place = int(before) if before.isascii() and before.isdigit() and len(before) < 19 else 0
    return ActivityFilters(family if family in dict(FAMILIES) else "", words, place)


def context_of(run: Run, asked: ActivityFilters, activity_page: ActivityPage) -> dict[str, Any]:
    """Return the context of runs/events/section.html and runs/events/list.html."""
    return {
        "run": run,
        "events": activity_page.happenings,
        "events_families": FAMILIES,
        "events_asked": asked,
        "events_here": asked.query(),
        "events_newest": asked.query(before=0),
        "events_earlier": asked.query(before=activity_page.next) if activity_page.next else "",
    }


def newest_context(scene: RunScene) -> dict[str, Any]:
    """Return the same context from the events that the run's page has already read."""
    return context_of(scene.run, ActivityFilters(), activity.of_events(scene.events, scene.run))
