"""Naming a checkpoint, which holds it: retention never removes a named checkpoint."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from agents.queries.access import Gone, private, reader_of
from agents.queries.checkpoint import checkpoint_or_404
from agents.views.run_page import offered_moves
from agents.views.run_page.run import show_run_again
from checkpoints import actors
from checkpoints.errors import CheckpointRemoved, ValueRefused
from checkpoints.models import Run
from checkpoints.runs import holds


@require_POST
@private
def create(request: HttpRequest, run_id: int, seq: int) -> HttpResponse:
    """Name the checkpoint as typed, or after its number. 403 for those who may only read; 422 for a name too long."""
    run, by = _run_to_name(request, run_id, seq)
    try:
        holds.name(run, seq, request.POST.get("name", ""), by=by)
    except CheckpointRemoved as gone:
        raise Gone(str(gone)) from gone
    except ValueRefused as refused:
        values = {
            "name_typed": request.POST.get("name", ""),
            "name_refused": f"The name {refused.reason}.",
        }
        return show_run_again(request, run, reader_of(request), values, status=422, at=seq)
    return _back(run, seq)


@require_POST
@private
def remove(request: HttpRequest, run_id: int, seq: int) -> HttpResponse:
    """Remove the name; without one nothing happens. 403 for those who may only read."""
    run, by = _run_to_name(request, run_id, seq)
    holds.unname(run, seq, by=by)
    return _back(run, seq)


def _run_to_name(request: HttpRequest, run_id: int, seq: int) -> tuple[Run, actors.Actor]:
    run, reader = offered_moves.run_to_order(request, run_id)
    checkpoint_or_404(run, seq)
    return run, actors.of_user(reader)


def _back(run: Run, seq: int) -> HttpResponse:
    return redirect(f"{reverse('run', args=[run.pk])}?at={seq}#inspect")
