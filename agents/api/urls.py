"""The addresses under /api/, each with the same wrapper."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.urls import URLPattern, include, path, re_path

from agents.api.interface import api
from agents.api.protocol import answers, limits, problems

View = Callable[..., HttpResponse]


def guarded(view: View) -> View:
    """Wrap a view: limits, ETags, no caching, HEAD as GET, and problem documents for what Django or ninja refuse.

    Exempt from Django's CSRF check, whose refusal would be a page: the session's authentication makes the same check of
    every write, and its refusal is a problem document.
    """

    @wraps(view)
    def through(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        asked = request.method
        request.method = "GET" if asked == "HEAD" else asked
        try:
            early = limits.refuse_unknown_token(request) or limits.refuse_large_body(request)
            response = early or view(request, *args, **kwargs)
        except Http404:
            response = problems.not_found(request)
        finally:
            request.method = asked
        if isinstance(response, HttpResponseNotAllowed):
            allowed = set(response["Allow"].split(", "))
            response = problems.not_allowed(request, allowed | ({"HEAD"} if "GET" in allowed else set()))
        response = limits.note_rate(request, response)
        response["Cache-Control"] = "no-store"
        return answers.add_etag(request, response)

    through.csrf_exempt = True  # type: ignore[attr-defined]
    return through


# Not `app_name`: by that name Django would put another namespace around these.
inside, app, namespace = api.urls
for pattern in inside:
    if isinstance(pattern, URLPattern):
        pattern.callback = guarded(pattern.callback)

urlpatterns = [
    path("", include((inside, app), namespace=namespace)),
    re_path("", guarded(problems.not_found), name="api-nowhere"),
]
