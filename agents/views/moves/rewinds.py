"""Rewinding a run: to a checkpoint as it is, or to before its step; the page shows first what that would do."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from agents.errors import RewindRefused
from agents.moves import rewind
from agents.queries.access import private
from agents.queries.checkpoint import checkpoint_or_404
from agents.queries.refusal_status import status_of
from agents.views.run_page import offered_moves
from agents.views.run_page.run import again
from agents.views.run_page.typed_order import TypedOrder, order_of
from checkpoints.models import Run


@require_POST
@private
def create(request: HttpRequest, run_id: int) -> HttpResponse:
    """Rewind the run. 409 with what it would do now where that is not what was shown."""
    run, reader = offered_moves.run_to_order(request, run_id)
    order = order_of(request, "rewind")
    checkpoint_or_404(run, order.at)
    try:
        rewind.rewind(
            run, to=order.to, by=reader, feedback=order.why, confirm=order.confirm, seen=order.seen, key=order.once
        )
    except RewindRefused as refusal:
        return refused(request, run, reader, order, refusal)
    return redirect("run", run.pk)


def refused(
    request: HttpRequest, run: Run, reader: User, order: TypedOrder, refusal: RewindRefused | None = None
) -> HttpResponse:
    """Show the run's page with what was typed, and why nothing was done."""
    status = status_of(refusal) if refusal else 200
    return again(request, run, reader, offered_moves.notice(refusal), status=status, at=order.at, order=order)
