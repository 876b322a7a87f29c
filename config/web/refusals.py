"""The error pages: 400 and 413 for requests that Django itself refuses, 404, 405, 410, 500 and 503."""

from __future__ import annotations

import errno
import sys

from django.conf import settings
from django.core.exceptions import BadRequest, RequestDataTooBig, TooManyFieldsSent
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views import defaults
from redis.exceptions import RedisError

from agents.access import Gone
from agents.api.protocol import problems
from approvals.middleware import Respond

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


def refuse_nul(get_response: Respond) -> Respond:
    """Refuse a NUL in an address before any view runs: PostgreSQL takes none, and no page's address has one.

    Answer 404 for one in the path, and 400 for one in the query; in the API 422, as for all junk there.
    """

    def respond(request: HttpRequest) -> HttpResponseBase:
        in_path, of_api = "\0" in request.path_info, request.path_info.startswith("/api/")
        query = request.META.get("QUERY_STRING", "")
        if not in_path and "\0" not in query and "%00" not in query:
            return get_response(request)
        if in_path:
            return problems.not_found(request) if of_api else not_found(request, Http404())
        words = "An address holds no NUL (%00)."
        return problems.answer_problem(request, 422, words) if of_api else bad_request(request, BadRequest(words))

    return respond


def explain_wrong_method(get_response: Respond) -> Respond:
    """Replace an empty 405 by a page, for a person who opens an address that takes only POST.

    A refused form stays at the address that it was sent to. Somebody who then signs in again, or reloads the address,
    sends a GET, and for a 405 without a body the browser shows its own error page, which has no link onwards.
    """

    def respond(request: HttpRequest) -> HttpResponseBase:
        answer = get_response(request)
        asks = request.method == "GET" and "text/html" in request.headers.get("Accept", "")
        if not (asks and answer.status_code == 405 and not getattr(answer, "content", b"-")):
            return answer
        page = render(request, "405.html", {"above": _above(request.path)}, status=405)
        page.headers["Allow"] = answer.headers.get("Allow", "")
        return page

    return respond


def _above(path: str) -> str:
    """Return the address of the form's page: `/gates/7/decisions/` is sent from `/gates/7/`."""
    names = path.strip("/").split("/")
    return f"/{'/'.join(names[:2] if len(names) > 2 else names[:1])}/"
