"""Leads from a decision to the next gate of the reader's queue, unless they chose otherwise.

The choice is a box beside the button that sends, ticked until the reader unticks it, and kept in a cookie.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from approvals.consequences.performed import read_fates
from approvals.gates.lists.queue_filters import QueueFilters
from approvals.gates.lists.queues import MINE, ReaderReach
from approvals.gates.page.shown_gate import counted
from approvals.live import page_frame
from approvals.models import Gate
from approvals.presentation.gate_facts import agreement, outcomes
from approvals.presentation.gate_facts.provenance import Provenance
from checkpoints.access.permissions import PersonKind, kind_of
from checkpoints.postgresql.prepared_rows import prepared_statement

from .access import number_in, reader_of
from .lists.asked import followed

COOKIE = "holdpoint_follow"
YEAR = 365 * 24 * 60 * 60  # seconds


def wanted(request: HttpRequest) -> bool:
    """Tell whether the reader wants the next gate to follow."""
    if "follows" in request.POST:  # set just now, in a form that is shown again
        return request.POST.get("follow") == "yes"
    return request.COOKIES.get(COOKIE) != "no"


def after(request: HttpRequest, gate_id: int) -> HttpResponse:
    """Redirect to the page after a decision: the next gate's where the form offered it, else the gate's own."""
    own = reverse("gate", args=[gate_id])
    if "follows" not in request.POST:
        return HttpResponseRedirect(own, status=303)
    on = request.POST.get("follow") == "yes"
    reach = page_frame.reach_of(request)
    found = following(request, reach, gate_id) if on else []
    to = f"{reverse('gate', args=[found[0]])}?decided={gate_id}" if found else own
    response = HttpResponseRedirect(to, status=303)
    said = "yes" if on else "no"
    response.set_cookie(COOKIE, said, max_age=YEAR, samesite="Lax", httponly=True, secure=request.is_secure())
    return response


def following(request: HttpRequest, reach: ReaderReach, gate_id: int) -> list[int]:
    """Return the id of the gate after this one in the list that the reader came from; else the first of their queue.

    Where the end of the list is reached, its beginning follows: gates may have come before those already passed.
    """
    wanted = followed(request)
    shown = [replace(wanted, after=gate_id), wanted]
    for each in (*shown, QueueFilters()) if wanted != QueueFilters() else shown:
        if found := reach.ids(MINE, most=1, wanted=each):
            return found
    return []


def decided(request: HttpRequest) -> dict[str, Any] | None:
    """Return the gate that the reader has just decided, for the page of the next one."""
    number, reader = number_in(request.GET.get("decided", "")), reader_of(request)
    gate = None if number is None else next(iter(_visible(number, reader.pk, kind=kind_of(reader))), None)
    if gate is None:
        return None
    if outcome := getattr(gate, "outcome", None):
        outcome._prefetched_objects_cache = {"decisions": counted(outcome)}
    fate = read_fates([gate]).get(gate.pk)
    ended = outcomes.ended(gate, fate=fate) if gate.status != Gate.Status.OPEN else None
    return {"gate": gate, "ended": ended, "provenance": Provenance.of(gate), "held": agreement.short(gate)}


@prepared_statement
def _visible(pk: Any, user: Any, *, kind: PersonKind) -> QuerySet[Gate]:
    seen = Gate.objects.visible_to(kind.person(user)).filter(pk=pk)
    return seen.select_related("run__plan", "outcome__proposal")
