"""Notes that people leave on a checkpoint. Anyone who may view the run may add one: a note decides nothing."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST

from agents.queries.access import Gone, is_fragment, private, reader_of, run_or_404
from agents.queries.checkpoint import checkpoint_or_404
from agents.views.run_page.inspector import notes_context
from agents.views.run_page.run import show_run_again
from checkpoints import actors
from checkpoints.errors import CheckpointRemoved, NoSuchCheckpoint, ValueRefused
from checkpoints.models import Run
from checkpoints.runs import notes


@require_POST
@private
def create(request: HttpRequest, run_id: int, seq: int) -> HttpResponse:
    """Add a note to the checkpoint; 422 with the input where it is refused."""
    run, reader = run_or_404(request, run_id), reader_of(request)
    text, key = request.POST.get("text", ""), request.POST.get("key", "")
    try:
        notes.note(run, seq, text, key=key, by=actors.of_user(reader))
    except CheckpointRemoved as gone:
        raise Gone(str(gone)) from gone
    except NoSuchCheckpoint as missing:
        raise Http404("No such checkpoint") from missing
    except ValueRefused as refused:
        values = {"note_typed": text, "note_refused": refused.reason}
        return _answer(request, run, seq, values, status=422)
    return _answer(request, run, seq)


@require_POST
@private
def remove(request: HttpRequest, run_id: int, seq: int, note: int) -> HttpResponse:
    """Remove one's own note; nothing happens if it is already gone. 403 for another person's."""
    run, reader = run_or_404(request, run_id), reader_of(request)
    checkpoint_or_404(run, seq)
    try:
        notes.take_back(run, seq, note, by=actors.of_user(reader))
    except notes.NotTheirs as refused:
        raise PermissionDenied(str(refused)) from refused
    except CheckpointRemoved as gone:
        raise Gone(str(gone)) from gone
    return _answer(request, run, seq)


def _answer(
    request: HttpRequest, run: Run, seq: int, notice: dict[str, Any] | None = None, status: int = 200
) -> HttpResponse:
    """Return the list alone if the page asks for a part of itself; else the page, at the checkpoint."""
    reader = reader_of(request)
    if is_fragment(request):
        checkpoint = checkpoint_or_404(run, seq)
        context = {"run": run, "checkpoint": checkpoint} | notes_context(checkpoint, reader)
        return render(request, "runs/checkpoint/notes_list.html", context | (notice or {}), status=status)
    if notice:
        return show_run_again(request, run, reader, notice, status=status, at=seq)
    return HttpResponseRedirect(f"{reverse('run', args=[run.pk])}?at={seq}#notes", status=303)
