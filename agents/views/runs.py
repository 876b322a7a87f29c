"""One run's page, and the parts of it that are fetched again."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from agents.runner import last_good
from checkpoints.models import Run
from checkpoints.verify import verify_run

from .access import is_fragment, private, reader_of, run_or_404
from .inspector import checkpoint_or_404, inspector_context
from .posted import number
from .sheets import Picked, effects_context, events_context, head_context, timeline_context
from .story import scene_of

VIEWS = ("changes", "state")


def picked_of(request: HttpRequest) -> Picked:
    """What the address asks for; anything that is no number reads as not asked."""

    at, to, before, all = (number(request.GET.get(name, "")) for name in ("at", "to", "before", "all"))
    view = request.GET.get("view", "")
    return Picked(at, view if view in VIEWS else "changes", to, before, min(all, 1))


def context_of(run: Run, reader: User, picked: Picked) -> dict[str, Any]:
    """Everything on the run's page but the checkpoint."""
    scene = scene_of(run, reader, before=picked.before or None)
    context = head_context(scene, reader) | timeline_context(scene, picked)
    context |= effects_context(scene, everything=bool(picked.all)) | events_context(run)
    context["may_move"] = scene.may_move
    if scene.story.run.frozen and (seq := last_good(run.pk)):
        context["last_good"] = checkpoint_or_404(run, seq)
    return context


@require_safe
@private
def page(request: HttpRequest, run_id: int) -> HttpResponse:
    """The run's page; `?at=` names a checkpoint, `&view=state` its whole state, `&to=` another one to compare with."""
    run = run_or_404(request, run_id)
    picked = picked_of(request)
    reader = reader_of(request)
    context = context_of(run, reader, picked)
    context |= inspector_context(run, picked, allowed=context["may_move"])
    return render(request, "runs/run.html", context)


@require_safe
@private
def timeline(request: HttpRequest, run_id: int) -> HttpResponse:
    """The timeline, with the head and the tables to be put in their places. With `?still=1` the inspector stays."""
    run = run_or_404(request, run_id)
    picked = picked_of(request)
    reader = reader_of(request)
    context = context_of(run, reader, picked)
    if not request.GET.get("still"):
        context |= inspector_context(run, picked, allowed=context["may_move"]) | {"inspect": True}
    return render(request, "runs/_live.html", context | {"oob": True})


@require_safe
@private
def events(request: HttpRequest, run_id: int) -> HttpResponse:
    """Every event of the run, but for the checkpoints, which the timeline tells."""
    run = run_or_404(request, run_id)
    return render(request, "runs/events.html", events_context(run, everything=True))


@require_safe
@private
def verification(request: HttpRequest, run_id: int) -> HttpResponse:
    """Read every checkpoint of the run and say whether the chain holds. On demand only: it costs the whole run."""
    run = run_or_404(request, run_id)
    if is_fragment(request):
        return render(request, "runs/_verification.html", {"run": run} | verified(run))
    picked = picked_of(request)
    reader = reader_of(request)
    context = context_of(run, reader, picked) | verified(run)
    context |= inspector_context(run, picked, allowed=context["may_move"])
    return render(request, "runs/run.html", context)


def verified(run: Run) -> dict[str, Any]:
    """For runs/_verification.html."""
    problems = verify_run(run)
    return {"verified": True, "problems": problems}
