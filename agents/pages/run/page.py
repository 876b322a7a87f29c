"""One run's page, and the parts of it that are reloaded."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from agents.access import checkpoint_or_404, is_fragment, run_or_404
from agents.models import Spoken
from agents.pages.run import timeline as timelines
from agents.pages.run.children import children_context
from agents.pages.run.effects import effects_context
from agents.pages.run.head import head_context, read_figures
from agents.pages.run.inspector import PickedCheckpoint, checkpoint_among, inspector_context, notes_context, picked_of
from agents.pages.run.row import RunRow, read_again, run_read_or_404
from agents.pages.run.story import RunScene, scene_of
from agents.runner.engine import last_good
from agents.runs import activity
from agents.runs.activity import FAMILIES, ActivityFilters, ActivityPage
from agents.waits import signals
from approvals.views.access import private_get, reader_of
from checkpoints.audit.verify_runs import verify_run
from checkpoints.models import Run
from checkpoints.runs.plans import spec_of

WORDS = 200  # characters of a search


def context_of(
    read: RunRow, reader: User, picked: PickedCheckpoint, *, inspect: bool = True, **how: Any
) -> dict[str, Any]:
    """Return the context of the run's page; `how` goes to `inspector_context`, where the checkpoint is shown."""
    run = read.run
    looked_at = {seq for seq in (picked.at, picked.to if inspect else 0) if seq}
    scene = scene_of(read, reader, before=picked.before or None, looked_at=looked_at)
    context: dict[str, Any] = {}
    if inspect:
        how = {"allowed": read.may_move} | how
        context = inspector_context(run, picked, reader=reader, known=scene.known, events=scene.events, **how)
    elif looked := checkpoint_among(scene.known, run, picked.at):
        context = {"checkpoint": looked[0]} | notes_context(looked[0], reader, scene.events)
    cells, result = read_figures(run)
    context |= head_context(scene, cells) | timeline_context(scene, picked)
    if run.status in Run.LIVE and spec_of(run.plan).signals:
        context["may_signal"] = signals.may_send(run, reader)
    context |= {"spoken": Spoken.objects.of(run), "result": result}
    context |= children_context(scene) | effects_context(scene, everything=bool(picked.all))
    context |= events_context(run, ActivityFilters(), activity.of_events(scene.events, run))
    if run.frozen and (seq := last_good(run.pk)):
        context["last_good"] = checkpoint_or_404(run, seq)
    return context


def show_run_again(
    request: HttpRequest, run: Run, reader: User, notice: dict[str, Any], *, status: int, at: int = 0, **how: Any
) -> HttpResponse:
    """Answer with the run's page as it is now, at a checkpoint, with `notice` on top: the result of a form."""
    context = context_of(read_again(run, reader), reader, PickedCheckpoint(at=at), **how)
    return render(request, "runs/run/page.html", context | notice, status=status)


@private_get
def page(request: HttpRequest, run_id: int) -> HttpResponse:
    """Show the run's page; `?at=` names a checkpoint, `&view=state` its whole state, `&to=` another to compare with."""
    read = run_read_or_404(request, run_id)
    return render(request, "runs/run/page.html", context_of(read, reader_of(request), picked_of(request)))


@private_get
def timeline(request: HttpRequest, run_id: int) -> HttpResponse:
    """Show the timeline, with the head and the tables to replace on the page. With `?still=1` the inspector stays."""
    inspect = not request.GET.get("still")
    read = run_read_or_404(request, run_id)
    context = context_of(read, reader_of(request), picked_of(request), inspect=inspect)
    return render(request, "runs/run/live_update.html", context | {"oob": True, "inspect": inspect})


@private_get
def spoken(request: HttpRequest, run_id: int) -> HttpResponse:
    """Show the progress that the running step reports."""
    run = run_or_404(request, run_id)
    _, result = read_figures(run)
    context = {"run": run, "spoken": Spoken.objects.of(run), "result": result}
    return render(request, "runs/run/live_output.html", context)


@private_get
def verification(request: HttpRequest, run_id: int) -> HttpResponse:
    """Read every checkpoint of the run and tell whether the chain holds. Only on request: it reads the whole run."""
    run = run_or_404(request, run_id)
    values = {"run": run, "verified": True, "problems": verify_run(run)}
    if is_fragment(request):
        return render(request, "runs/timeline/verification.html", values)
    read = run_read_or_404(request, run_id)
    return render(request, "runs/run/page.html", values | context_of(read, reader_of(request), picked_of(request)))


@private_get
def events_page(request: HttpRequest, run_id: int) -> HttpResponse:
    """Show the newest events of a run that match `?family=&words=`, or those before `?before=`."""
    run, asked = run_or_404(request, run_id), asked_of(request)
    context = events_context(run, asked, activity.page(run, asked))
    return render(request, "runs/events/list.html" if is_fragment(request) else "runs/events/page.html", context)


def asked_of(request: HttpRequest) -> ActivityFilters:
    """Return the filters in the address; junk is ignored."""
    family, before = request.GET.get("family", ""), request.GET.get("before", "")
    words = request.GET.get("words", "").strip()[:WORDS]
    place = int(before) if before.isascii() and before.isdigit() and len(before) < 19 else 0
    return ActivityFilters(family if family in dict(FAMILIES) else "", words, place)


def events_context(run: Run, asked: ActivityFilters, activity_page: ActivityPage) -> dict[str, Any]:
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


def timeline_context(scene: RunScene, picked: PickedCheckpoint) -> dict[str, Any]:
    """Return the context of runs/timeline/timeline.html."""
    drawn = timelines.build(scene.story)
    selected = picked.at or (scene.run.seq if scene.story.newest else 0)
    return {
        "run": scene.run,
        "timeline": drawn,
        "selected": selected,
        "unfolded": any(row.abandoned and row.seq == selected for row in drawn.rows),
        "picked": picked,
        "live_query": picked.query(still=1) if picked.at or picked.before else picked.query(),
        "earlier": PickedCheckpoint(before=scene.first_seq).query()
        if scene.first_seq > 1 and not scene.first_left
        else "",
        "later": not scene.story.newest,
    }
