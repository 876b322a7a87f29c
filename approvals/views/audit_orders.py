"""Takes the orders on the audit's page: a verification, an export, the erasure of a text."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import islice

from asgiref.sync import sync_to_async
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from approvals.audit import erasing, exporting, seal_verification
from approvals.audit.erasing import ErasureRefused
from approvals.presentation import audit
from checkpoints import actors
from checkpoints.access.missing_permission import say_missing_permission
from checkpoints.access.permissions import VIEW_AUDIT
from checkpoints.audit.filters import NoFilter
from checkpoints.models import Event, Verification

from .access import private, reader_of
from .audit import auditor_or_404, filters_of, typed_of

AT_ONCE = 200  # lines of an export that are made and sent together


@require_safe
@private
def seals(request: HttpRequest) -> HttpResponse:
    """Show how far the audit is sealed, and the findings of its last verification."""
    reader = auditor_or_404(request)
    return render(request, "audit/_seals.html", {"seals": seal_verification.standing(), "may_audit": reader.may_audit})


@require_POST
@private
def verifications(request: HttpRequest) -> HttpResponse:
    """Order a verification of all seals. 403 for people who may only view."""
    reader = auditor_or_404(request)
    if not reader.may_audit:
        raise PermissionDenied(say_missing_permission(reader.user, VIEW_AUDIT))
    Verification.objects.ask(by=actors.of_user(reader.user))
    return redirect(reverse("audit") + audit.address(typed_of(request.POST)) + "#seals")


@require_POST
@private
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


@require_POST
@private
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
