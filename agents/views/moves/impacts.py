"""What an order would do, shown while it is typed. Nothing is written."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import render
from django.views.decorators.http import require_POST

from agents.queries.access import is_fragment, private
from agents.queries.checkpoint import checkpoint_or_404
from agents.views.run_page import offered_moves
from agents.views.run_page.typed_order import KINDS, order_of

from . import rewinds
from .edits import edit_context
from .forks import fork_context


@require_POST
@private
def create(request: HttpRequest, run_id: int) -> HttpResponse:
    """Show the impact of the order in the form, as a part of its page or, without a script, the page."""
    run, reader = offered_moves.run_to_order(request, run_id)
    kind = request.POST.get("kind", "")
    if kind not in KINDS:
        said = f"kind has to be one of {', '.join(KINDS)}."  # not translated: only programs send another
        return HttpResponseBadRequest(said, content_type="text/plain")
    order = order_of(request, kind)
    if kind == "rewind":
        checkpoint = checkpoint_or_404(run, order.at)
        if not is_fragment(request):
            return rewinds.refused(request, run, reader, order)
        context = {"run": run, "checkpoint": checkpoint} | offered_moves.panel(run, checkpoint, order)
        part = "runs/_rewind.html" if "panel" in request.POST else "runs/_options_live.html"
        return render(request, part, context)
    context = edit_context(run, order) if kind == "edit" else fork_context(run, order)
    template = "runs/_order_live.html" if is_fragment(request) else f"runs/{kind}.html"
    return render(request, template, context)
