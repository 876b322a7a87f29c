"""Limits the untrusted text that one page draws.

Each text is clamped by itself, but a gate may bring thousands of them. So a page has room for PAGE characters; after
that each text shows only its beginning, `SHORT`, its length and a link to all of it.
"""

from __future__ import annotations

from contextvars import ContextVar

from django.http import HttpRequest, HttpResponseBase

from approvals.middleware import Respond

PAGE = 400_000  # characters of one page
# Characters to draw, how often it was asked, and characters to compare.
_left: ContextVar[list[int] | None] = ContextVar("left", default=None)


def middleware(get_response: Respond) -> Respond:
    """Give each request its room; rendering without a request (an e-mail, a test) has no limit."""

    def respond(request: HttpRequest) -> HttpResponseBase:
        token = _left.set([PAGE, 0, PAGE])
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
    left[1] += 1
    return fits


def compares(characters: int) -> bool:
    """Tell whether so many characters may still be compared for the page, and count them."""
    left = _left.get()
    if left is None:
        return True
    fits = characters <= left[2]
    left[2] -= characters if fits else 0
    return fits


def asked() -> int:
    """Return how often this page asked for room. What draws without asking draws the same on every page."""
    left = _left.get()
    return left[1] if left else 0
