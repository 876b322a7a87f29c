"""Orders from a run's own page: rewind it, wake it, cancel it, or undo at once what it left behind."""

from __future__ import annotations

from dataclasses import replace

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from agents.access import checkpoint_or_404, is_fragment, private
from agents.errors import RewindRefused
from agents.moves import rewind as moving
from agents.moves.cancel import cancel as cancel_run
from agents.pages.edits import edit_context
from agents.pages.forks import fork_context
from agents.pages.run import offered_moves
from agents.pages.run.offered_moves import TypedOrder, order_of
from agents.pages.run.page import show_run_again
from agents.waits import suspend
from approvals import forms
from approvals.policy import step_up
from checkpoints import actors
from checkpoints.models import Run

CONTEXTS = {"edit": edit_context, "fork": fork_context}


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


@require_POST
@private
def impact(request: HttpRequest, run_id: int) -> HttpResponse:
    """Show the impact of the order in the form, as a part of its page or, without a script, the page."""
    run, reader = offered_moves.run_to_order(request, run_id)
    kind = request.POST.get("kind", "")
    if kind not in ("rewind", *CONTEXTS):
        return _no_such_kind("rewind", *CONTEXTS)
    order = order_of(request, kind)
    if kind in CONTEXTS:
        template = "runs/order/preview_update.html" if is_fragment(request) else f"runs/order/{kind}.html"
        return render(request, template, CONTEXTS[kind](run, order))
    checkpoint = checkpoint_or_404(run, order.at)
    if not is_fragment(request):
        return show_run_again(request, run, reader, {}, status=200, at=order.at, order=order)
    context = {"run": run, "checkpoint": checkpoint} | offered_moves.panel(run, checkpoint, order)
    part = "runs/rewind/panel.html" if "panel" in request.POST else "runs/rewind/preview_update.html"
    return render(request, part, context)


@require_POST
@private
def form(request: HttpRequest, run_id: int) -> HttpResponse:
    """Draw the form of a state after a list changed, a branch was chosen or a part opened; the input is kept.

    Only the state's form for a script, else the whole page.
    """
    run, _ = offered_moves.run_to_order(request, run_id)
    kind = request.POST.get("kind", "")
    if kind not in CONTEXTS:
        return _no_such_kind(*CONTEXTS)
    order = order_of(request, kind)
    order = replace(order, texts=forms.applied(order.texts, request.POST.get("change", "")))
    template = "runs/order/state_form.html" if request.headers.get("X-Fragment") else f"runs/order/{kind}.html"
    return render(request, template, CONTEXTS[kind](run, order))


def _no_such_kind(*kinds: str) -> HttpResponse:
    return HttpResponseBadRequest(f"kind has to be one of {', '.join(kinds)}.", content_type="text/plain")
