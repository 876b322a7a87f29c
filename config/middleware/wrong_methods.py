"""Shows a page to a person who opens an address that takes only POST.

A refused form stays at the address that it was sent to. Somebody who then signs in again, or reloads the address,
sends a GET, and for a 405 without a body the browser shows its own error page, which has no link onwards.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render

from approvals.middleware import Respond


def middleware(get_response: Respond) -> Respond:
    """Replace an empty 405 for a browser by a page."""

    def respond(request: HttpRequest) -> HttpResponseBase:
        answer = get_response(request)
        return explained(request, answer) if _says_nothing(request, answer) else answer

    return respond


def explained(request: HttpRequest, answer: HttpResponseBase) -> HttpResponseBase:
    """Return the 405 with a page that links to where to go on."""
    page = render(request, "405.html", {"above": above(request.path)}, status=405)
    page.headers["Allow"] = answer.headers.get("Allow", "")
    return page


def above(path: str) -> str:
    """Return the address of the form's page: `/gates/7/decisions/` is sent from `/gates/7/`."""
    names = path.strip("/").split("/")
    return f"/{'/'.join(names[:2] if len(names) > 2 else names[:1])}/"


def _says_nothing(request: HttpRequest, answer: HttpResponseBase) -> bool:
    wanted = request.method == "GET" and "text/html" in request.headers.get("Accept", "")
    return wanted and answer.status_code == 405 and not getattr(answer, "content", b"-")
