"""Notes which browser takes pushed messages, so that whoever signed out of it is told nothing there any more.

The browser's own script ends them too as its person leaves, unless it failed, or the session was ended from elsewhere.
A session knows its browser's number, and a cookie hands it to the next one, as messages come between sessions too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponseBase

from approvals.models import ChannelAddress

COOKIE = NUMBER = "hp-pushed"  # in the session too
LASTS = 365 * 24 * 60 * 60  # seconds
CHANNEL = "push"
SIGNED_OUT = "signed_out"  # why a browser is told nothing more


def turned_on(request: HttpRequest, response: HttpResponseBase, number: int) -> None:
    """Note that this browser takes messages as the address of this number."""
    request.session[NUMBER] = number
    response.set_signed_cookie(
        COOKIE, str(number), salt=COOKIE, max_age=LASTS, path="/accounts/", httponly=True, samesite="Lax",
        secure=settings.SESSION_COOKIE_SECURE,
    )  # fmt: skip


def signed_in(request: HttpRequest, user: User) -> None:
    """Hand this browser's number to the session that begins; whoever was signed in before is told nothing there."""
    number = request.get_signed_cookie(COOKIE, default="", salt=COOKIE, max_age=LASTS)
    if number:
        request.session[NUMBER] = int(number)
        _usable().filter(pk=int(number)).exclude(user=user).lose(SIGNED_OUT)


def end(user: User, sessions: Iterable[Mapping[str, Any]]) -> None:
    """Send this person nothing more in the browsers of these sessions."""
    numbers = [number for each in sessions if (number := each.get(NUMBER))]
    _of(user).filter(pk__in=numbers).lose(SIGNED_OUT)


def end_all(user: User, *, but: Mapping[str, Any] | None) -> None:
    """Send this person nothing more in any browser, except the one of the session `but`."""
    _of(user).exclude(pk=(but or {}).get(NUMBER)).lose(SIGNED_OUT)


def _of(user: User) -> Any:
    return _usable().filter(user=user)


def _usable() -> Any:
    return ChannelAddress.objects.usable(CHANNEL)
