"""Settling at once: what the run left behind is undone now, not when nothing ahead can take it over."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from agents.errors import RewindRefused
from agents.moves import rewind
from agents.queries.access import private
from agents.queries.refusal_status import status_of
from agents.views.run_page import offered_moves
from agents.views.run_page.run import again


@require_POST
@private
def create(request: HttpRequest, run_id: int) -> HttpResponse:
    """Undo now. 409 where there is nothing to undo."""
    run, reader = offered_moves.run_to_order(request, run_id)
    try:
        rewind.settle_now(run, by=reader)
    except RewindRefused as refusal:
        return again(request, run, reader, offered_moves.notice(refusal), status=status_of(refusal))
    return redirect("run", run.pk)
