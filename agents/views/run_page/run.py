"""One run's page, and the parts of it that are reloaded."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from agents.models import Spoken
from agents.queries import agent_words, run_row
from agents.queries.access import is_fragment, private, reader_of, run_or_404
from agents.queries.checkpoint import checkpoint_or_404
from agents.queries.run_row import RunRow, run_read_or_404
from agents.queries.run_story import scene_of
from agents.runner.engine import last_good
from agents.waits import signals
from checkpoints.audit.verify_runs import verify_run
from checkpoints.models import Run
from checkpoints.runs.plans import spec_of

from . import events
from .inspector import checkpoint_among, inspector_context, notes_context
from .sheets import PickedCheckpoint, children_context, effects_context, head_context, timeline_context
from .typed_order import parse_number

VIEWS = ("changes", "state")


def picked_of(request: HttpRequest) -> PickedCheckpoint:
    """Return the reader's choice in the address; anything that is not a number is ignored."""
    at, to, before, all = (parse_number(request.GET.get(name, "")) for name in ("at", "to", "before", "all"))
    view = request.GET.get("view", "")
    return PickedCheckpoint(at, view if view in VIEWS else "changes", to, before, min(all, 1))


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
    words = agent_words.read_figures(run)
    context |= head_context(scene, words.cells) | timeline_context(scene, picked)
    if run.status in Run.LIVE and spec_of(run.plan).signals:
        context["may_signal"] = signals.may_send(run, reader)
    context |= {"spoken": Spoken.objects.of(run), "result": words.result}
    context |= children_context(scene)
    context |= effects_context(scene, everything=bool(picked.all)) | events.newest_context(scene)
    if run.frozen and (seq := last_good(run.pk)):
        context["last_good"] = checkpoint_or_404(run, seq)
    return context


def show_run_again(
    request: HttpRequest, run: Run, reader: User, notice: dict[str, Any], *, status: int, at: int = 0, **how: Any
) -> HttpResponse:
    """Answer with the run's page as it is now, at a checkpoint, with `notice` on top: the result of a form."""
    context = context_of(run_row.read(run, reader), reader, PickedCheckpoint(at=at), **how)
    return render(request, "runs/run/page.html", context | notice, status=status)


@require_safe
@private
def page(request: HttpRequest, run_id: int) -> HttpResponse:
    """Show the run's page; `?at=` names a checkpoint, `&view=state` its whole state, `&to=` another to compare with."""
    read = run_read_or_404(request, run_id)
    return render(request, "runs/run/page.html", context_of(read, reader_of(request), picked_of(request)))


@require_safe
@private
def timeline(request: HttpRequest, run_id: int) -> HttpResponse:
    """Show the timeline, with the head and the tables to replace on the page. With `?still=1` the inspector stays."""
    inspect = not request.GET.get("still")
    read = run_read_or_404(request, run_id)
    context = context_of(read, reader_of(request), picked_of(request), inspect=inspect)
    return render(request, "runs/run/live_update.html", context | {"oob": True, "inspect": inspect})


@require_safe
@private
def spoken(request: HttpRequest, run_id: int) -> HttpResponse:
    """Show the progress that the running step reports."""
    run = run_or_404(request, run_id)
    words = agent_words.read_figures(run)
    return render(
        request, "runs/run/live_output.html", {"run": run, "spoken": Spoken.objects.of(run), "result": words.result}
    )


@require_safe
@private
def verification(request: HttpRequest, run_id: int) -> HttpResponse:
    """Read every checkpoint of the run and tell whether the chain holds. Only on request: it reads the whole run."""
    run = run_or_404(request, run_id)
    values = {"run": run, "verified": True, "problems": verify_run(run)}
    if is_fragment(request):
        return render(request, "runs/timeline/verification.html", values)
    read = run_read_or_404(request, run_id)
    return render(request, "runs/run/page.html", values | context_of(read, reader_of(request), picked_of(request)))
