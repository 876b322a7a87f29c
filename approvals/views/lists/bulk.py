"""Bulk decisions: the list before one is sent, the POST that sends it, and how far it has come."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.urls import reverse

from approvals.decisions.bulk import orders
from approvals.decisions.bulk.carrying_out import carry_out
from approvals.decisions.bulk.orders import BulkChoice, BulkSubmission
from approvals.decisions.submission import Then, Verdict
from approvals.errors import Invalid, NotAllowed
from approvals.gates.lists.queues import MINE
from approvals.live.page_frame import reach_of
from approvals.models import BulkOrder
from approvals.policy import bulk as together
from approvals.policy import step_up
from approvals.policy.bulk import MOST
from approvals.presentation import bulk
from approvals.views.access import number_in, private_get, private_post, reader_of
from checkpoints.postgresql.sql import make_storable

from .asked import InboxFilters

BESIDE_FIELDS = ("comment", "second_look")  # faults that are shown beside their fields
SCANNED = 1_000  # gates of the list among which others of the kind are looked for
CHOICE = 2_200  # characters of one posted choice at most: its number, digest and mark


@private_post
def preview(request: HttpRequest) -> HttpResponse:
    """List the selected gates with what the decision would do to each. Writes nothing."""
    numbers = numbers_in(request.POST.getlist("gate"))
    if request.POST.get("more") == "yes" and numbers:
        numbers = [*numbers, *_alike(request, numbers)][:MOST]
    return _show(request, numbers)


def _alike(request: HttpRequest, numbers: list[int]) -> list[int]:
    """List the other gates of the reader's list that may be decided together with the first of these."""
    wanted = replace(InboxFilters.of(dict(parse_qsl(request.POST.get("here", "")))).wanted, after=0)
    found = reach_of(request).gates(MINE, most=SCANNED, wanted=wanted)
    like = next((gate for gate in found if gate.pk in numbers and not together.why_alone(gate)), None)
    if like is None:
        return []
    kind = together.kind_of(like)
    alike = (gate.pk for gate in found if not together.why_alone(gate) and together.kind_of(gate) == kind)
    return [number for number in alike if number not in numbers]


def _show(request: HttpRequest, numbers: list[int], *, faults: Any = (), status: int = 200) -> HttpResponse:
    said = request.POST
    verdict = Verdict.REJECT if said.get("verdict") == Verdict.REJECT else Verdict.APPROVE
    confirmed = step_up.of_session(request)
    found = bulk.listed(numbers, verdict=str(verdict), reader=reader_of(request), confirmed=confirmed)
    told = {each["pointer"].removeprefix("/"): each["message"] for each in faults}
    used = any(each["pointer"] == orders.USED for each in faults)
    context = {
        "found": found, "key": (not used and said.get("key")) or uuid.uuid4().hex, "comment": said.get("comment", ""),
        "back": said.get("then") == Then.BACK, "ticked": said.get("second_look") == "yes", "most": MOST,
        "faults": told, "other_faults": [words for name, words in told.items() if name not in BESIDE_FIELDS],
    }  # fmt: skip
    return render(request, "approvals/bulk/preview.html", context, status=status)


@private_post
def create(request: HttpRequest) -> HttpResponse:
    """Take a bulk decision and carry it out; a repeated POST goes on where an earlier one was cut short."""
    reader, said = reader_of(request), request.POST
    if "order" in said:
        order = _own_or_404(request, said["order"])
    else:
        choices = choices_in(said.getlist("choice"))
        sent = BulkSubmission(
            key=said.get("key", ""), verdict=said.get("verdict", ""), gates=choices, comment=said.get("comment", ""),
            then=said.get("then", ""), second_look=said.get("second_look") == "yes",
        )  # fmt: skip
        try:
            order = orders.take(sent, by=reader)
        except NotAllowed as refusal:
            raise PermissionDenied(str(refusal)) from refusal
        except Invalid as refusal:
            numbers = [each.gate for each in choices]
            return _show(request, numbers, faults=refusal.errors, status=422)
    carry_out(order, by=reader, confirmed=step_up.of_session(request))
    return HttpResponseRedirect(reverse("bulk", args=[order.pk]), status=303)


@private_get
def page(request: HttpRequest, order_id: int) -> HttpResponse:
    """Show a bulk decision of the reader's, gate by gate."""
    found = orders.progress(_own_or_404(request, str(order_id)), reader=reader_of(request))
    return render(request, "approvals/bulk/page.html", {"found": found, "results": bulk.BulkResults.of(found)})


@private_get
def progress(request: HttpRequest) -> HttpResponse:
    """Say how far the reader's bulk decision with the form's key has come, for the page that waits for it."""
    order = BulkOrder.objects.filter(user=reader_of(request), key=request.GET.get("key", "")[:80]).first()
    found = orders.progress(order, reader=reader_of(request)) if order else None
    return render(request, "approvals/bulk/progress.html", {"found": found})


def _own_or_404(request: HttpRequest, number: str) -> BulkOrder:
    return get_object_or_404(BulkOrder, user=reader_of(request), pk=number_in(number))


def numbers_in(said: list[str]) -> list[int]:
    """Return the numbers of a selection, each once, `MOST` at most; junk is left out."""
    known = [number for each in said if (number := number_in(each)) is not None]
    return list(dict.fromkeys(known))[:MOST]


def choices_in(said: list[str]) -> list[BulkChoice]:
    """Return the gates of a form as they were on its list; junk is left out."""
    found = []
    for each in said[: MOST + 1]:
        number, _colon, rest = each[:CHOICE].partition(":")
        seen, _colon, shown = rest.partition(":")
        try:
            digest = bytes.fromhex(seen)
        except ValueError:
            continue
        if numbers_in([number]):
            found.append(BulkChoice(int(number), digest, make_storable(shown)))
    return found
