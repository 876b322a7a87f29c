"""Tells a page's script where to go next, where the script asks, instead of redirecting it.

A script cannot read a redirect, only follow it. The page after each decision would be drawn twice: for the script,
which throws it away, and for the browser, which the script then sends there.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase

from approvals.middleware import Respond

ASKED, TOLD = "X-Tell-Redirect", "X-Redirect-To"  # static/js/sending.js has the same names


def middleware(get_response: Respond) -> Respond:
    """Answer 204 with the address in a header instead of a redirect, where the request asks for that."""

    def respond(request: HttpRequest) -> HttpResponseBase:
        answer = get_response(request)
        if ASKED in request.headers and 300 <= answer.status_code < 400 and "Location" in answer.headers:
            answer.status_code = 204
            answer.headers[TOLD] = answer.headers["Location"]
            del answer.headers["Location"]
        return answer

    return respond
