"""Takes what people do at a gate beside deciding it: claims, releases, takeovers, handing over, comments, questions.

Also shows who else looks at it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import Group, User
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse

from approvals.assignments import reassigning
from approvals.assignments.errors import DeskRefused, MayNot, NotAsked
from approvals.errors import Invalid
from approvals.gates import mentions
from approvals.models import Looking
from approvals.presentation.gate_page.page import GatePage
from checkpoints.postgresql.sql import make_storable

from .access import gate_get, gate_or_404, gate_post, number_in, page_or_404, reader_of
from .gates import show

LONGEST = 60  # characters of the beginning of a name


@gate_post
def change_claim(request: HttpRequest, gate_id: int, order: Callable[..., None]) -> HttpResponse:
    """Claim the gate for the reader, release it, or take somebody's claim over."""
    page = page_or_404(request, gate_id)
    try:
        order(page.gate, by=page.user)
    except DeskRefused as refusal:
        return _unchanged(request, page_or_404(request, gate_id), str(refusal), refusal.status)
    return HttpResponseRedirect(reverse("gate", args=[gate_id]) + "#gate-claim", status=303)


def _unchanged(request: HttpRequest, page: GatePage, why: str, status: int) -> HttpResponse:
    told = {"title": "Nothing was changed.", "said": why, "tone": "stop", "icon": "people"}
    return show(request, page, status=status, refusal=told)


@gate_get
def show_choices(request: HttpRequest, gate_id: int) -> HttpResponse:
    """Show whom the reader may hand the gate over to."""
    return _show_choices(request, page_or_404(request, gate_id))


@gate_post
def hand_over(request: HttpRequest, gate_id: int) -> HttpResponse:
    """Hand the gate over; 422 with what was typed where that cannot be."""
    found = page_or_404(request, gate_id)
    try:
        reassigning.check(found.gate, by=found.user)
        to = _named(request.POST.get("to", ""))
        reassigning.reassign(found.gate, to=to, reason=request.POST.get("reason", ""), by=found.user)
    except DeskRefused as refusal:
        return _show_choices(request, found, refusal)
    return HttpResponseRedirect(reverse("gate", args=[gate_id]) + "#gate-desk", status=303)


def _named(said: str) -> User | Group:
    """Return the person or team of "user:7" or "team:3"; raises NotAsked for anything else, known or not."""
    kind, _colon, digits = said.partition(":")
    model: Any = {"user": User, "team": Group}.get(kind)
    if model and (number := number_in(digits, 9)) is not None:
        found = model.objects.filter(pk=number).first()
        if isinstance(found, User | Group):
            return found
    raise NotAsked("Choose somebody from the list.")


def _show_choices(request: HttpRequest, found: GatePage, refusal: DeskRefused | None = None) -> HttpResponse:
    try:
        choices = reassigning.choices(found.gate, by=found.user) if found.open else None
    except MayNot as may_not:
        choices, refusal = None, may_not
    if choices is None:
        return _unchanged(request, found, str(refusal or "This gate is closed."), refusal.status if refusal else 409)
    context = {"page": found, "choices": choices, "refused": refusal, "typed": request.POST}
    return render(request, "approvals/desk/hand_over.html", context, status=refusal.status if refusal else 200)


@gate_post
def take_remark(request: HttpRequest, gate_id: int, say: Callable[..., object]) -> HttpResponse:
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
def show_people(request: HttpRequest, gate_id: int) -> HttpResponse:
    """Show whom a comment may mention: `?q=` begins their name."""
    gate, user = gate_or_404(request, gate_id), reader_of(request)
    found = mentions.offered(gate, make_storable(request.GET.get("q", "")[:LONGEST]), to=user)
    return render(request, "approvals/discussion/people.html", {"people": found})


@gate_get
def show_viewers(request: HttpRequest, gate_id: int) -> HttpResponse:
    """Show who else has the gate's page in sight."""
    gate, user = gate_or_404(request, gate_id), reader_of(request)
    people = Looking.objects.people([gate.pk], but=user).get(gate.pk, [])
    return render(request, "approvals/discussion/viewers.html", {"people": people, "gate_id": gate.pk})
