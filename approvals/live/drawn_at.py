"""Where a page's live feed starts: at what was there before anything of the page was read.

A view reads what it shows before its template is rendered. A cursor that was read only then would lie after facts
that the page does not show, and nobody would ever tell it of them.
"""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

from approvals.middleware import PROBED, Respond

from . import page_frame


def middleware(get_response: Respond) -> Respond:
    """Read the frame of whole pages of people who may be signed in; fragments start no feed."""

    def respond(request: HttpRequest) -> HttpResponseBase:
        if _starts_a_feed(request):
            page_frame.of(request)
        return get_response(request)

    return respond


def _starts_a_feed(request: HttpRequest) -> bool:
    if request.path_info in PROBED:
        return False
    fragment = request.headers.get("HX-Request") == "true"
    return settings.SESSION_COOKIE_NAME in request.COOKIES and request.accepts("text/html") and not fragment
