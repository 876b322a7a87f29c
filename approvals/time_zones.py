"""Writes times in the reader's zone, which their browser sends in a cookie, so that no script has to change them.

A zone that the person chose comes before the browser's own.

Without the cookie times are UTC and say so; a script replaces them with the reader's own, and sets the cookie.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone

from .middleware import Respond

COOKIE = "hp-zone"  # the browser's
CHOSEN = "hp-own-zone"  # the person's, see approvals.accounts.preferences


def middleware(get_response: Respond) -> Respond:
    """Answer within the reader's zone."""

    def respond(request: HttpRequest) -> HttpResponseBase:
        with _zone_of(request):
            return get_response(request)

    return respond


def _zone_of(request: HttpRequest) -> AbstractContextManager[Any]:
    names = (request.COOKIES.get(cookie, "") for cookie in (CHOSEN, COOKIE))
    name = next((name for name in names if name in known_zones()), "")
    return timezone.override(ZoneInfo(name)) if name else nullcontext()


@cache
def known_zones() -> frozenset[str]:
    """Return the names of all zones."""
    return frozenset(available_timezones())
