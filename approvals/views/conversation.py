"""Takes comments at a gate and questions to its agent, and shows who else looks at it."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse

from approvals.errors import Invalid
from approvals.gates import mentions
from approvals.models import Looking
from checkpoints.postgresql.sql import make_storable

from .access import gate_get, gate_or_404, gate_post, page_or_404, reader_of
from .gates import show

LONGEST = 60  # characters of the beginning of a name


@gate_post
def create(request: HttpRequest, gate_id: int, say: Callable[..., object]) -> HttpResponse:
    """Record a comment at the gate, or put a question to its agent."""
    page = page_or_404(request, gate_id)
    try:
        say(page.gate, by=page.user, text=request.POST.get("text", ""), key=request.POST.get("key", ""))
    except Invalid as refusal:
        page.unsaid = request.POST.get("text", "")
        told = {
            "title": "Nothing was said yet.",
            "said": refusal.errors[0]["message"],
            "tone": "stop",
            "icon": "warn",
        }
        return show(request, page, status=422, refusal=told)
    if request.headers.get("HX-Request") == "true":
        return render(request, "approvals/discussion/remarks.html", {"page": page})
    return HttpResponseRedirect(reverse("gate", args=[gate_id]) + "#ask-back", status=303)


@gate_get
def people(request: HttpRequest, gate_id: int) -> HttpResponse:
    """Show whom a comment may mention: `?q=` begins their name."""
    gate, user = gate_or_404(request, gate_id), reader_of(request)
    found = mentions.offered(gate, make_storable(request.GET.get("q", "")[:LONGEST]), to=user)
    return render(request, "approvals/discussion/people.html", {"people": found})


@gate_get
def looking(request: HttpRequest, gate_id: int) -> HttpResponse:
    """Show who else has the gate's page in sight."""
    gate, user = gate_or_404(request, gate_id), reader_of(request)
    people = Looking.objects.people([gate.pk], but=user).get(gate.pk, [])
    return render(request, "approvals/discussion/viewers.html", {"people": people, "gate_id": gate.pk})
