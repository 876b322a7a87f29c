"""Reveals a secret of the state that a gate asks for."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST

from approvals.forms.texts import as_json
from approvals.gates import reveal_secret
from approvals.presentation.text import untrusted

from .access import gate_or_404, private, reader_of, verified


@require_POST
@private
@verified
def create(request: HttpRequest, gate_id: int) -> HttpResponse:
    """Show the secret at the place `at`, and record that in the audit."""
    gate, at = gate_or_404(request, gate_id), request.POST.get("at", "")
    try:
        value = reveal_secret.of_gate(gate, at, by=reader_of(request))
    except reveal_secret.NotRevealed as refusal:
        return refused(request, refusal)
    back, of = reverse("gate", args=[gate_id]) + "#secrets", f"Gate {gate_id}"
    return shown(request, at, value, back=back, of=of)


def shown(request: HttpRequest, at: str, value: Any, *, back: str, of: str) -> HttpResponse:
    """Show the secret: as a fragment for a page that inserts it, else on a page of its own."""
    text = value if isinstance(value, str) else as_json(value)
    drawn = untrusted.render(text, clamp=False, value=True)
    if request.headers.get("HX-Request") == "true":
        return HttpResponse(drawn)
    return render(request, "approvals/values/revealed.html", {"at": at, "shown": drawn, "back": back, "of": of})


def refused(request: HttpRequest, refusal: reveal_secret.NotRevealed) -> HttpResponse:
    """Answer 403 to people who may not, 404 where nothing is secret."""
    if isinstance(refusal, reveal_secret.RevealNotAllowed):
        return render(request, "approvals/values/not_revealed.html", {"why": str(refusal)}, status=403)
    raise Http404(str(refusal))
