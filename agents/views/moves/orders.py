"""Orders from a run's own page: rewind it, wake it, cancel it, or undo at once what it left behind."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from agents.errors import RewindRefused
from agents.moves import rewind as moving
from agents.moves.cancel import cancel as cancel_run
from agents.queries.access import private
from agents.queries.checkpoint import checkpoint_or_404
from agents.views.run_page import offered_moves
from agents.views.run_page.run import show_run_again
from agents.views.run_page.typed_order import TypedOrder, order_of
from agents.waits import suspend
from approvals.policy import step_up
from checkpoints import actors
from checkpoints.models import Run


@require_POST
@private
def rewind(request: HttpRequest, run_id: int) -> HttpResponse:
    """Rewind the run to a checkpoint as it is, or to before its step. 409 where it would not do what was shown."""
    run, reader = offered_moves.run_to_order(request, run_id)
    order = order_of(request, "rewind")
    checkpoint_or_404(run, order.at)
    try:
        moving.rewind(
            run, to=order.to, by=reader, feedback=order.why, confirm=order.confirm, seen=order.seen, key=order.once,
            confirmed=step_up.of_session(request),
        )  # fmt: skip
    except RewindRefused as refusal:
        return refused(request, run, reader, refusal, order)
    return redirect("run", run.pk)


@require_POST
@private
def settle(request: HttpRequest, run_id: int) -> HttpResponse:
    """Undo at once what the run left behind, even if a step ahead could reuse it. 409 if there is nothing to undo."""
    run, reader = offered_moves.run_to_order(request, run_id)
    try:
        moving.settle_now(run, by=reader)
    except RewindRefused as refusal:
        return refused(request, run, reader, refusal)
    return redirect("run", run.pk)


@require_POST
@private
def wake(request: HttpRequest, run_id: int) -> HttpResponse:
    """End the time that the run waits for now. 409 if it waits for none."""
    run, reader = offered_moves.run_to_order(request, run_id)
    try:
        suspend.wake_now(run, by=actors.of_user(reader))
    except RewindRefused as refusal:
        return refused(request, run, reader, refusal)
    return redirect("run", run.pk)


@require_POST
@private
def cancel(request: HttpRequest, run_id: int) -> HttpResponse:
    """Cancel the run. 403 for those who may only read; 409 if it has already ended."""
    run, reader = offered_moves.run_to_order(request, run_id)
    if cancel_run(run, by=reader, reason=request.POST.get("reason", "").strip()):
        return redirect("run", run.pk)
    return show_run_again(request, run, reader, {"too_late": True}, status=409)


def refused(
    request: HttpRequest, run: Run, reader: User, refusal: RewindRefused, order: TypedOrder | None = None
) -> HttpResponse:
    """Show the run's page with the input, and why nothing was done."""
    at, notice = order.at if order else 0, offered_moves.notice(refusal)
    return show_run_again(request, run, reader, notice, status=refusal.status, at=at, order=order)
