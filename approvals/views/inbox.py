"""The inbox and its list, which is fetched again when a gate opens or closes."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.db.models import F, Max, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from approvals import authority
from approvals.models import Decision, Gate
from approvals.presentation import inbox

from .access import private, reader_of

SHOWN = 100
QUEUES = (("mine", "Mine", "inbox"), ("all", "All I may see", "list"), ("decided", "Decided", "check"))
EMPTY = {
    "mine": "No gate is yours just now",
    "all": "No gate is open just now",
    "decided": "Nothing has been decided yet",
}


@require_safe
@private
def page(request: HttpRequest) -> HttpResponse:
    """The inbox; `?queue=` names another list than one's own."""
    return render(request, "approvals/inbox.html", context_of(request))


@require_safe
@private
def listing(request: HttpRequest) -> HttpResponse:
    """The list alone."""
    return render(request, "approvals/list.html", context_of(request))


def context_of(request: HttpRequest) -> dict[str, Any]:
    user, now = reader_of(request), timezone.now()
    asked = request.GET.get("queue", "")
    queue = asked if asked in EMPTY else "mine"
    text = request.GET.get("show", "")
    limit = min(int(text), 2000) if text.isascii() and text.isdigit() and len(text) < 6 else SHOWN
    found = list(read(gates(queue, user))[: limit + 1])
    said = spoken_for(user, found)
    rows = [inbox.row(gate, now=now, said=gate.pk in said) for gate in found[:limit]]
    if queue != "decided":
        rows += [inbox.row(gate, now=now, lingering=True) for gate in just_closed(queue, user)]
        groups = inbox.grouped(rows, now=now)
    else:
        groups = [inbox.Group(key="decided", label="Newest first", rows=rows)] if rows else []
    heading = next(label for key, label, _ in QUEUES if key == queue)
    last = Gate.objects.visible_to(user).aggregate(last=Max("closed_at"))["last"] if not rows else None
    queues = [queue_link(key, label, icon, user, current=key == queue) for key, label, icon in QUEUES]
    return {
        "queue": queue, "heading": heading, "groups": groups, "empty": EMPTY[queue], "last": last,
        "summary": inbox.summary(groups) if queue != "decided" else "",
        "more": limit + SHOWN if len(found) > limit else 0,
        "queues": queues, "mine": queues[0]["count"],
    }  # fmt: skip


def queue_link(key: str, label: str, icon: str, user: User, *, current: bool) -> dict[str, Any]:
    count = None if key == "decided" else gates(key, user).count()
    return {"key": key, "label": label, "icon": icon, "count": count, "current": current}


def gates(queue: str, user: User) -> QuerySet[Gate]:
    """The gates of one queue, the most urgent first."""
    if queue == "decided":
        return Gate.objects.visible_to(user).exclude(status=Gate.Status.OPEN).order_by("-closed_at", "-pk")
    found = Gate.objects.open().decidable_by(user) if queue == "mine" else Gate.objects.open().visible_to(user)
    return found.order_by(F("deadline").asc(nulls_last=True), "opened_at", "pk")


def read(found: QuerySet[Gate]) -> QuerySet[Gate]:
    """With everything that a row shows."""
    return found.select_related("run__plan", "policy", "team", "outcome").prefetch_related(
        "outcome__decisions__user", "outcome__grants"
    )


def just_closed(queue: str, user: User) -> list[Gate]:
    """Gates that left the queue some seconds ago: they are shown once more, so that nobody wonders where they went."""
    since = timezone.now() - inbox.LINGERS
    found = read(Gate.objects.visible_to(user).filter(closed_at__gte=since).order_by("closed_at"))[:SHOWN]
    return [gate for gate in found if queue == "all" or not authority.why_not(user, gate)]


def spoken_for(user: User, found: list[Gate]) -> set[int]:
    """Which of these gates hold the reader's own word on what stands."""
    mine = Decision.objects.filter(gate__in=found, user=user, counts=True, proposal__number=F("gate__proposal"))
    return set(mine.values_list("gate_id", flat=True))
