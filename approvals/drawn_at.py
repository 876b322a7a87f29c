"""Where a page's live feed starts: at what was there before anything of the page was read.

A view reads what it shows before its template is rendered. A cursor that was read only then would lie after facts
that the page does not show, and nobody would ever tell it of them.
"""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from checkpoints import cursor


class DrawnAtMiddleware:
    """Sets `request.drawn_at` for whole pages of people who may be signed in; fragments start no feed."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """As Django's middleware is called."""
        fragment = request.headers.get("HX-Request") == "true"
        if settings.SESSION_COOKIE_NAME in request.COOKIES and request.accepts("text/html") and not fragment:
            request.drawn_at = cursor.newest()  # type: ignore[attr-defined]
        return self.get_response(request)
