"""The audit's page: every event that the reader may see, filtered and searched, newest first; and the orders on it.

These are a verification, an export, and the erasure of a text.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, QueryDict, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone

from approvals.audit import erasing, exporting, listing, seal_verification
from approvals.audit.erasing import ErasureRefused
from approvals.audit.listing import AuditReader, PageMark
from approvals.presentation import audit
from checkpoints import actors
from checkpoints.access.permissions import VIEW_AUDIT, say_missing_permission
from checkpoints.audit.filters import AuditFilters, NoFilter
from checkpoints.models import Event, Verification

from .access import private_get, private_post, reader_of

NAMES = ("kind", "team", "words", "subject", "run", "agent", "actor", "since", "until", "zone")
AT_ONCE = 200  # lines of an export that are made and sent together


def auditor_or_404(request: HttpRequest) -> AuditReader:
    """Return the reader's access to the audit; 404 for somebody without any."""
    reader = listing.reader(reader_of(request))
    if not reader.may_see:
        raise Http404("No such page")
    return reader


@private_get
def page(request: HttpRequest) -> HttpResponse:
    """Show the list; `?before=` names the place below which it goes on."""
    reader = auditor_or_404(request)
    typed = typed_of(request.GET)
    try:
        filters, refused = filters_of(typed), ""
    except NoFilter as error:
        filters, refused = AuditFilters(), str(error)
    teams = Group.objects.all() if reader.everything else Group.objects.filter(pk__in=reader.teams)
    context = {
        "typed": typed, "refused": refused, "set": audit.address(typed), "seals": seal_verification.standing(),
        "kinds": audit.kinds(), "teams": list(teams.order_by("name").values_list("pk", "name")[:200]),
        "may_audit": reader.may_audit,
    }  # fmt: skip
    if not refused:
        before = PageMark.read(request.GET.get("before", ""))
        context |= listed(reader, filters, typed, before)
    return render(request, "audit/page.html", context, status=400 if refused else 200)


@private_get
def news(request: HttpRequest) -> HttpResponse:
    """Show the number of events since the list was drawn; the list itself never moves under a reader."""
    reader = auditor_or_404(request)
    typed, after = typed_of(request.GET), PageMark.read(request.GET.get("after", ""))
    try:
        count = listing.newer(reader, filters_of(typed), after) if after else None
    except NoFilter:
        count = None
    return render(request, "audit/_news.html", {"count": count, "after": after, "set": audit.address(typed)})


def listed(
    reader: AuditReader, filters: AuditFilters, typed: dict[str, str], before: PageMark | None
) -> dict[str, Any]:
    """Return the context of audit/_list.html."""
    found = listing.page(reader, filters, before=before)
    rows = audit.rows(found, reader)
    top = PageMark.from_event(found.events[0]) if found.events else PageMark(0, 0)
    return {
        "rows": rows, "before": before, "after": top, "filtered": bool(filters.to_json()),
        "older": audit.address(typed, before=found.next) if found.next else "",
    }  # fmt: skip


def typed_of(sent: QueryDict) -> dict[str, str]:
    """Return the texts that were typed into the filters."""
    return {name: sent.get(name, "").strip()[:200] for name in NAMES}


def filters_of(typed: dict[str, str]) -> AuditFilters:
    """Read the typed filters, with times in the reader's zone. Raises NoFilter for an invalid one."""
    try:
        zone = ZoneInfo(typed["zone"] or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError):
        zone = ZoneInfo("UTC")
    with timezone.override(zone):
        return AuditFilters.read(typed)


@private_get
def seals(request: HttpRequest) -> HttpResponse:
    """Show how far the audit is sealed, and the findings of its last verification."""
    reader = auditor_or_404(request)
    return render(request, "audit/_seals.html", {"seals": seal_verification.standing(), "may_audit": reader.may_audit})


@private_post
def verifications(request: HttpRequest) -> HttpResponse:
    """Order a verification of all seals. 403 for people who may only view."""
    reader = auditor_or_404(request)
    if not reader.may_audit:
        raise PermissionDenied(say_missing_permission(reader.user, VIEW_AUDIT))
    Verification.objects.ask(by=actors.of_user(reader.user))
    return redirect(reverse("audit") + audit.address(typed_of(request.POST)) + "#seals")


@private_post
def exports(request: HttpRequest) -> HttpResponse | StreamingHttpResponse:
    """Export the filtered events. 403 for people who may only view; 400 for an invalid filter."""
    reader = auditor_or_404(request)
    if not reader.may_audit:
        raise PermissionDenied(say_missing_permission(reader.user, VIEW_AUDIT))
    format = "csv" if request.POST.get("format") == "csv" else "jsonl"
    try:
        filters = filters_of(typed_of(request.POST))
    except NoFilter:
        return redirect(reverse("audit") + audit.address(typed_of(request.POST)))
    by = actors.of_user(reader.user)
    export = exporting.prepare(filters, format=format, texts="texts" in request.POST, by=by, visible=reader.audited())
    response = StreamingHttpResponse(in_pieces(export.lines), content_type=exporting.TYPES[format])
    response["Content-Disposition"] = f'attachment; filename="{export.name}"'
    return response


@private_post
def erasures(request: HttpRequest, event_id: int) -> HttpResponse:
    """Erase what a person wrote with an event. 403 without that right; 409 where there is nothing to erase."""
    reader = auditor_or_404(request)
    event = get_object_or_404(Event, pk=event_id)
    if not reader.sees(event):
        raise Http404("No such event")
    try:
        erasing.erase(event, reason=request.POST.get("reason", ""), by=reader_of(request))
    except erasing.MayNotErase as refusal:
        raise PermissionDenied(str(refusal)) from refusal
    except ErasureRefused as refusal:
        status = 422 if isinstance(refusal, erasing.NoReason) else 409
        return render(request, "audit/refused.html", {"event": event, "why": str(refusal)}, status=status)
    return redirect(f"{reverse('audit')}?subject=event%3A{event.pk}")


async def in_pieces(lines: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yield lines in batches, made on a thread while they are sent. Django would hold all of a plain iterator."""
    while piece := await sync_to_async(lambda: b"".join(islice(lines, AT_ONCE)))():
        yield piece
