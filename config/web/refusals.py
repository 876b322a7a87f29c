"""The error pages: 400 and 413 for requests that Django itself refuses, 404, 410 and 500."""

from __future__ import annotations

from django.conf import settings
from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views import defaults

from agents.api.protocol import problems
from agents.queries.access import Gone


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 413 with the limit that a form exceeded and what to do, else 400."""
    limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE if isinstance(exception, RequestDataTooBig) else None
    most = f"{settings.DATA_UPLOAD_MAX_NUMBER_FIELDS:,}" if isinstance(exception, TooManyFieldsSent) else None
    return render(request, "400.html", {"limit": limit, "most": most}, status=413 if limit or most else 400)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 404, or 410 with the reason for something that was here."""
    gone = str(exception) if isinstance(exception, Gone) else ""
    return render(request, "404.html", {"gone": gone}, status=410 if gone else 404)


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer 500; to programs with a problem document."""
    return problems.broken(request) if request.path.startswith("/api/") else defaults.server_error(request)
