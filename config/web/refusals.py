"""The error pages: 400 and 413 for requests that Django itself refuses, 404, 410, 500 and 503."""

from __future__ import annotations

import errno
import sys

from django.conf import settings
from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views import defaults
from redis.exceptions import RedisError

from agents.api.protocol import problems
from agents.queries.access import Gone

FULL = (errno.ENOSPC, errno.EDQUOT)  # a disk without room, such as that of the uploaded files


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
    """Answer 500, or 503 where the database or Redis is away or a disk is full; to programs in a problem."""
    of_api, error = request.path.startswith("/api/"), sys.exception()
    if isinstance(error, (OperationalError, InterfaceError)):
        return problems.unavailable(request) if of_api else _unavailable(request, "503.html")
    if isinstance(error, RedisError):
        return problems.unavailable(request) if of_api else _unavailable(request, "503_redis.html")
    if isinstance(error, OSError) and error.errno in FULL:
        return problems.disk_full(request) if of_api else _unavailable(request, "503_disk.html")
    return problems.broken(request) if of_api else defaults.server_error(request)


def _unavailable(request: HttpRequest, template: str) -> HttpResponse:
    page = defaults.server_error(request, template)
    page.status_code = 503
    page["Retry-After"] = str(problems.PAUSE)
    return page
