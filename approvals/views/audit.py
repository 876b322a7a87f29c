"""The audit's page: every event that the reader may see, filtered and searched; newest first."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.contrib.auth.models import Group
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from approvals.audit import listing, readers, seal_verification
from approvals.audit.listing import PageMark
from approvals.audit.readers import AuditReader
from approvals.presentation import audit
from checkpoints.audit.filters import AuditFilters, NoFilter

from .access import private, reader_of

NAMES = ("kind", "team", "words", "subject", "run", "agent", "actor", "since", "until", "zone")


def auditor_or_404(request: HttpRequest) -> AuditReader:
    """Return the reader's access to the audit; 404 for somebody without any."""
    reader = readers.reader(reader_of(request))
    if not reader.may_see:
        raise Http404("No such page")
    return reader


@require_safe
@private
def page(request: HttpRequest) -> HttpResponse:
    """Show the list; `?before=` names the place below which it goes on."""
    reader = auditor_or_404(request)
    typed = typed_of(request.GET)
    try:
        filters, refused = filters_of(typed), ""
    except NoFilter as error:
        filters, refused = AuditFilters(), str(error)
    context = {
        "typed": typed, "refused": refused, "set": audit.address(typed), "seals": seal_verification.standing(),
        "kinds": audit.kinds(), "teams": offered_teams(reader), "may_audit": reader.may_audit,
    }  # fmt: skip
    if not refused:
        before = PageMark.read(request.GET.get("before", ""))
        context |= listed(reader, filters, typed, before)
    return render(request, "audit/page.html", context, status=400 if refused else 200)


@require_safe
@private
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


def offered_teams(reader: AuditReader) -> list[tuple[int, str]]:
    """List (id, name) of the first teams by name, for the filter."""
    teams = Group.objects.all() if reader.everything else Group.objects.filter(pk__in=reader.teams)
    return list(teams.order_by("name").values_list("pk", "name")[:200])


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
