"""Settling at once: what the run left behind is undone now, not when nothing ahead can take it over."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from agents import rewinds
from agents.errors import RewindRefused

from . import orders, reading
from .access import private
from .runs import context_of
from .sheets import Picked


@require_POST
@private
def create(request: HttpRequest, run_id: int) -> HttpResponse:
    """Undo now. 409 where there is nothing to undo."""
    run, reader = orders.run_to_order(request, run_id)
    try:
        rewinds.settle_now(run, by=reader)
    except RewindRefused as refusal:
        context = context_of(reading.read(run, reader), reader, Picked())
        return render(request, "runs/run.html", context | orders.notice(refusal), status=orders.status_of(refusal))
    return redirect("run", run.pk)
