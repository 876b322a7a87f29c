"""Cancelling a run."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from agents.moves.cancel import cancel
from agents.queries import run_row
from agents.queries.access import private, reader_of, run_or_404
from agents.views.run_page.run import context_of
from agents.views.run_page.sheets import PickedCheckpoint
from checkpoints.access.permissions import may


@require_POST
@private
def create(request: HttpRequest, run_id: int) -> HttpResponse:
    """Cancel the run. 403 for those who may only look; 409 where it has ended already."""
    run = run_or_404(request, run_id)
    reader = reader_of(request)
    if not may(reader, run.team_id, "checkpoints.rewind_run"):
        raise PermissionDenied
    if cancel(run, by=reader, reason=request.POST.get("reason", "").strip()):
        return redirect("run", run.pk)
    context = context_of(run_row.read(run, reader), reader, PickedCheckpoint()) | {"too_late": True}
    return render(request, "runs/run.html", context, status=409)
