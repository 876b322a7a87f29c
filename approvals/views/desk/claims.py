"""Takes claims, releases and takeovers of a gate, each by one POST, answered by the gate's page."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from approvals.assignments import claims
from approvals.assignments.errors import DeskRefused
from approvals.models import Gate

from ..access import page_or_404, private, verified
from ..gates import show

NOT_DONE = "Nothing was changed."


@require_POST
@private
@verified
def claim(request: HttpRequest, gate_id: int) -> HttpResponse:
    """Claim the gate for the reader."""
    return _answer(request, gate_id, claims.claim)


@require_POST
@private
@verified
def release(request: HttpRequest, gate_id: int) -> HttpResponse:
    """End the reader's claim."""
    return _answer(request, gate_id, claims.release)


@require_POST
@private
@verified
def take_over(request: HttpRequest, gate_id: int) -> HttpResponse:
    """Take somebody's claim over."""
    return _answer(request, gate_id, claims.take_over)


def _answer(request: HttpRequest, gate_id: int, order: Callable[..., None]) -> HttpResponse:
    page = page_or_404(request, gate_id)
    try:
        order(page.gate, by=page.user)
    except DeskRefused as refusal:
        return refused(request, page_or_404(request, gate_id).gate, page.user, refusal)
    return HttpResponseRedirect(reverse("gate", args=[gate_id]) + "#gate-claim", status=303)


def refused(request: HttpRequest, gate: Gate, user: User, refusal: DeskRefused) -> HttpResponse:
    """Show the gate with why nothing was changed."""
    told = {"title": NOT_DONE, "said": str(refusal), "tone": "stop", "icon": "people"}
    return show(request, page_or_404(request, gate.pk), status=refusal.status, refusal=told)
