"""Notes which browser takes pushed messages, so that only those who are signed in there are told what they are about.

Once a session has expired, its person is told that there is a message, and whoever sits at the browser reads no more
than that. A session knows its browser's number, and so does its row in the list; a cookie hands it to the next session,
so that messages say it all again once the same person signs in. Signing out ends them, as does the browser's script.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef
from django.http import HttpRequest, HttpResponseBase

from approvals.models import ChannelAddress, SignedIn
from approvals.sessions import digest_of_key

COOKIE = NUMBER = "hp-pushed"  # in the session too
LASTS = 365 * 24 * 60 * 60  # seconds
CHANNEL = "push"
SIGNED_OUT = "signed_out"  # why a browser is told nothing more


def turned_on(request: HttpRequest, response: HttpResponseBase, number: int, *, reader: User) -> None:
    """Note that this browser takes the reader's messages as the address of this number."""
    _note(request, number, user=reader)
    response.set_signed_cookie(
        COOKIE, str(number), salt=COOKIE, max_age=LASTS, path="/accounts/", httponly=True, samesite="Lax",
        secure=settings.SESSION_COOKIE_SECURE,
    )  # fmt: skip


def signed_in(request: HttpRequest, user: User) -> None:
    """Hand this browser's number to the session that begins; whoever was signed in before is told nothing there."""
    number = request.get_signed_cookie(COOKIE, default="", salt=COOKIE, max_age=LASTS)
    if number:
        _note(request, int(number), user=user)
        _usable().filter(pk=int(number)).exclude(user=user).lose(SIGNED_OUT)


def reachable() -> Any:
    """Select the browsers that messages may go to, and say of each whether its person is signed in there now."""
    there = SignedIn.objects.open().filter(pushed_to=OuterRef("pk"), user=OuterRef("user"))
    return _usable().annotate(signed_in=Exists(there))


def end(user: User, sessions: Iterable[Mapping[str, Any]]) -> None:
    """Send this person nothing more in the browsers of these sessions."""
    numbers = [number for session in sessions if (number := session.get(NUMBER))]
    _browsers_of(user).filter(pk__in=numbers).lose(SIGNED_OUT)


def end_all(user: User, *, but: Mapping[str, Any] | None) -> None:
    """Send this person nothing more in any browser, except the one of the session `but`."""
    _browsers_of(user).exclude(pk=(but or {}).get(NUMBER)).lose(SIGNED_OUT)


def _note(request: HttpRequest, number: int, *, user: User) -> None:
    request.session[NUMBER] = number
    SignedIn.objects.update_or_create(
        session_key=digest_of_key(request.session.session_key or ""), defaults={"user": user, "pushed_to": number}
    )


def _browsers_of(user: User) -> Any:
    return _usable().filter(user=user)


def _usable() -> Any:
    return ChannelAddress.objects.usable(CHANNEL)
