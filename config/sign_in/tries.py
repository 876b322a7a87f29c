"""Counts wrong passwords and codes by where they come from.

Counted by account alone, anybody anywhere could shut its owner out; by address alone, very many addresses could guess
without end. So each place has a limit, and all places that are strange to the account have one together. Of IPv6 a
place is the /64 network. A browser in which the owner has signed in has a signed cookie and is known, whatever others
try (OWASP's device cookies). For codes it is known only once a second factor was proved in it: whoever knows the
password alone may have signed in before the account had one.
"""

from __future__ import annotations

import secrets
from urllib.parse import quote

from allauth.core.internal import ratelimit
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

DEVICE, DEVICE_LASTS = "hp-device", 90 * 24 * 60 * 60  # the cookie, and seconds
_PROVED = "2-"  # begins the id of a browser in which a second factor was proved
_APPS = {"login_failed": "allauth.account", "factor": "allauth.mfa"}


def count(request: HttpRequest, action: str, *limits: tuple[str, str]) -> ratelimit.RateLimitUsage | None:
    """Count one more try towards each (rate, key); None, and counted nowhere, where one of them takes no more.

    Whoever finds the try to be right rolls it back.
    """
    counted = ratelimit.RateLimitUsage([])
    for rate, key in limits:
        used = ratelimit.consume(request, app=_APPS[action], action=action, config={action: rate}, key=key)
        if used is None:
            counted.rollback()  # no guess was compared there
            return None
        counted.usage += used.usage
    return counted


def device_of(request: HttpRequest, name: str, *, proved: bool = False) -> str:
    """Return the id of this person's browser from its cookie; "" where they have not signed in there.

    `proved`: "" too where they did so without a second factor.
    """
    cookie = str(request.get_signed_cookie(DEVICE, default="", salt=DEVICE, max_age=DEVICE_LASTS))
    person, _, number = cookie.rpartition(":")
    return cookie if person == _as_header(name) and (number.startswith(_PROVED) or not proved) else ""


def mark_device(request: HttpRequest, response: HttpResponseBase, name: str, *, proved: bool) -> None:
    """Set the cookie that marks the browser as one in which this person has signed in, for ninety days from now."""
    new = f"{_as_header(name)}:{_PROVED if proved else ''}{secrets.token_hex(16)}"
    response.set_signed_cookie(
        DEVICE, device_of(request, name, proved=proved) or new, salt=DEVICE, max_age=DEVICE_LASTS, path="/accounts/",
        httponly=True, samesite="Lax", secure=settings.SESSION_COOKIE_SECURE,
    )  # fmt: skip


def _as_header(name: str) -> str:
    """Write a name as a cookie can hold it: a header of other letters than ASCII is never sent."""
    return quote(name, safe="@+")
