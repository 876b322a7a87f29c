"""Cancelling a run."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from agents.moves.cancel import cancel
from agents.queries.access import private
from agents.views.run_page import offered_moves
from agents.views.run_page.run import again


@require_POST
@private
def create(request: HttpRequest, run_id: int) -> HttpResponse:
    """Cancel the run. 403 for those who may only look; 409 where it has ended already."""
    run, reader = offered_moves.run_to_order(request, run_id)
    if cancel(run, by=reader, reason=request.POST.get("reason", "").strip()):
        return redirect("run", run.pk)
    return again(request, run, reader, {"too_late": True}, status=409)
