"""Puts a gate off for the reader alone, and brings it back."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from approvals.gates.lists import snoozing
from approvals.gates.lists.queues import MINE
from approvals.gates.lists.snoozing import NotPutOff
from approvals.models import Gate, Snooze
from approvals.policy import authority
from approvals.views.access import gate_or_404, gate_post, number_in, reader_of

from .asked import kept


@gate_post
def create(request: HttpRequest, gate_id: int) -> HttpResponse:
    """Put the gate off: `for` an hour, until tomorrow or next week, or `until` a time; with `end`, bring it back."""
    gate, reader = gate_or_404(request, gate_id), reader_of(request)
    if reason := authority.why_not(reader, gate):
        raise PermissionDenied(reason)
    back = reverse("inbox") + "?" + (urlencode(kept(request)) or f"queue={MINE}")
    if "end" in request.POST:
        snoozing.bring_back(gate, by=reader.pk)
        return HttpResponseRedirect(back, status=303)
    try:
        until = _until(request)
        snoozing.put_off(gate, by=reader.pk, until=until)
    except NotPutOff as refusal:
        return render(request, "approvals/snooze/refused.html", {"gate": gate, "why": str(refusal)}, status=422)
    return HttpResponseRedirect(f"{back}&snoozed={gate.pk}", status=303)


def _until(request: HttpRequest) -> datetime:
    choice, now = request.POST.get("for", ""), timezone.localtime()
    if choice in snoozing.CHOICES:
        return snoozing.until_of(choice, now=now)
    try:
        said = parse_datetime(request.POST.get("until", ""))
    except ValueError:
        said = None
    if said is None:
        raise NotPutOff("Choose a day and a time.")
    return timezone.make_aware(said) if timezone.is_naive(said) else said


def just_put_off(request: HttpRequest) -> Snooze | None:
    """Return the reader's snooze that the address tells of, for the notice with its undo."""
    number, reader = number_in(request.GET.get("snoozed", "")), reader_of(request)
    if number is None:
        return None
    seen = Gate.objects.visible_to(reader).filter(pk=number)
    found = Snooze.objects.running().filter(user=reader, gate__in=seen)
    return found.select_related("gate__run__plan").first()
