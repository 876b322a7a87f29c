"""The form of a state with a list changed, a branch chosen, a part opened. What was typed is kept; nothing is done."""

from __future__ import annotations

from dataclasses import replace

from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import render
from django.views.decorators.http import require_POST

from agents.queries.access import private
from agents.views.run_page import offered_moves
from agents.views.run_page.typed_order import order_of
from approvals import forms

from .edits import edit_context
from .forks import fork_context

CONTEXTS = {"edit": edit_context, "fork": fork_context}


@require_POST
@private
def create(request: HttpRequest, run_id: int) -> HttpResponse:
    """Draw the changed form: the state's alone where script asks for it, else the whole page. Nothing is written."""
    run, _ = offered_moves.run_to_order(request, run_id)
    kind = request.POST.get("kind", "")
    if kind not in CONTEXTS:
        said = f"kind has to be one of {', '.join(CONTEXTS)}."  # not translated: only programs send another
        return HttpResponseBadRequest(said, content_type="text/plain")
    order = order_of(request, kind)
    order = replace(order, texts=forms.applied(order.texts, request.POST.get("change", "")))
    template = "runs/_state_form.html" if request.headers.get("X-Fragment") else f"runs/{kind}.html"
    return render(request, template, CONTEXTS[kind](run, order))
