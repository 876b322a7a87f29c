"""Tells how many gates wait for the reader, to pages that do not draw it anew."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from approvals.live import page_frame
from approvals.views.access import private


@require_safe
@private
def show(request: HttpRequest) -> HttpResponse:
    """Answer the number alone, as the bar at the top shows it."""
    frame = page_frame.of(request)
    return HttpResponse(str(frame.waiting if frame else 0), content_type="text/plain; charset=utf-8")
