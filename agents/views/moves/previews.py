"""Previews of an order while it is typed: its impact, and its form after a list changed. Nothing is written."""

from __future__ import annotations

from dataclasses import replace

from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import render
from django.views.decorators.http import require_POST

from agents.queries.access import is_fragment, private
from agents.queries.checkpoint import checkpoint_or_404
from agents.views.run_page import offered_moves
from agents.views.run_page.run import show_run_again
from agents.views.run_page.typed_order import order_of
from approvals import forms

from .edits import edit_context
from .forks import fork_context

CONTEXTS = {"edit": edit_context, "fork": fork_context}


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
    words = f"kind has to be one of {', '.join(kinds)}."
    return HttpResponseBadRequest(words, content_type="text/plain")
