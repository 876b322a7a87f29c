"""How much of other people's words one page draws.

Each text is clamped by itself, and a gate may bring thousands of them. So a page has room for so many characters; once
that is used up each text keeps its beginning, with how long it is and the way to all of it.
"""

from __future__ import annotations

from contextvars import ContextVar

from django.http import HttpRequest, HttpResponseBase

from approvals.middleware import Respond

PAGE = 400_000  # characters of one page
SHORT = 300  # of each text that has no room any more
_left: ContextVar[list[int] | None] = ContextVar("left", default=None)


def middleware(get_response: Respond) -> Respond:
    """Give each page its room; what is drawn without a request (an e-mail, a test) has no bound."""

    def respond(request: HttpRequest) -> HttpResponseBase:
        token = _left.set([PAGE])
        try:
            return get_response(request)
        finally:
            _left.reset(token)

    return respond


def takes(characters: int) -> bool:
    """Tell whether the page still has room for so many characters, and take it."""
    left = _left.get()
    if left is None:
        return True
    fits = characters <= left[0]
    left[0] -= characters if fits else 0
    return fits
