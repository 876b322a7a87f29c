"""Failed attempts to sign in: counts wrong passwords and codes by where they come from, and records them in the audit.

Counted by account alone, anybody anywhere could shut its owner out; by address alone, very many addresses could guess
without end. So each place has a limit, and all places that are strange to the account have one together. Of IPv6 a
place is the /64 network. A browser in which the owner has signed in has a signed cookie and is known, whatever others
try (OWASP's device cookies). For codes it is known only once a second factor was proved in it: whoever knows the
password alone may have signed in before the account had one. The counts of all web processes together are in Redis;
without it nobody signs in (503), as nothing would limit the guesses.

Failed sign-ins, failed confirmations and changed passwords are in the audit, with the client's address.
The typed name is not stored: somebody who types their password into the wrong field would leave it there for good. An
existing account is named by its number; any other name is kept as a keyed digest, which distinguishes one name that is
tried again and again from many.

A flood of failures makes few events: for one account and address, and for all together, the first of a minute is
recorded and then the tenth, hundredth and so on, with the count so far. Each web process counts by itself.
"""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from allauth.core import context
from allauth.core.internal import ratelimit
from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponseBase
from django.utils.crypto import salted_hmac

from agents.access import address_of
from approvals.accounts import pushed
from checkpoints import actors
from checkpoints.events import event_log

MINUTE = 60.0
SINGLE = 200  # failed sign-ins of a minute that are recorded by account and address; beyond it all together
MANY = "many addresses"
DEVICE, DEVICE_LASTS = "hp-device", 90 * 24 * 60 * 60  # the cookie, and seconds
_PROVED = "2-"  # begins the id of a browser in which a second factor was proved
_APPS = {"login_failed": "allauth.account", "factor": "allauth.mfa"}


class JsonSerializer:
    """Writes a count as JSON, where Django would pickle it: what comes back from Redis is data, never code to run."""

    def dumps(self, value: Any) -> bytes:
        """Return the value as bytes."""
        return json.dumps(value).encode()

    def loads(self, data: bytes) -> Any:
        """Return the value of the bytes. Raises ValueError for anything but JSON."""
        return json.loads(data)


def count_try(request: HttpRequest, action: str, *limits: tuple[str, str]) -> ratelimit.RateLimitUsage | None:
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


class MinuteCounter:
    """A counter of keys that starts again each minute."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, ...]] = Counter()
        self.ends = 0.0

    def count(self, *what: str) -> int:
        """Count one more of the key, and return its count so far."""
        if time.monotonic() >= self.ends:
            self.counts, self.ends = Counter(), time.monotonic() + MINUTE
        self.counts[what] += 1
        return self.counts[what]


minute = MinuteCounter()


class PasswordTold:
    """Records in the audit every change of a password, on any page; Django calls it as a password validator."""

    def validate(self, password: str, user: User | None = None) -> None:
        """Accept every password: other validators refuse weak ones."""

    def get_help_text(self) -> str:
        """Return "": this validator has no rule to explain."""
        return ""

    def password_changed(self, password: str, user: User) -> None:
        """Write the event, in the transaction of the change, and end pushed messages: every other session is void."""
        request = context.request
        by = getattr(request, "user", None)
        pushed.end_all(user, but=request.session if by == user else None)
        event_log.record(
            "user.password_changed",
            subject=f"user:{user.pk}",
            by=actors.of_user(by) if isinstance(by, User) else actors.SYSTEM,
            data={"address": client_address(request) if request else ""},
        )


def on_failure(sender: Any, credentials: Mapping[str, Any], request: HttpRequest | None = None, **_: Any) -> None:
    """Record refused credentials: as a confirmation if the name is the signed-in person's, else as a sign-in."""
    if request is None:
        return
    typed = str(credentials.get("username", ""))
    if isinstance(request.user, User) and request.user.get_username() == typed:
        confirmation_failed(request)
        return
    address, together = client_address(request), minute.count(MANY)
    if together > SINGLE:
        _tell_sign_ins(together, subject=f"address:{MANY}", address=MANY)
        return
    known = None if "\0" in typed else User.objects.filter(username=typed[:150]).only("pk").first()
    subject = f"user:{known.pk}" if known else f"address:{address}"
    name = {} if known else {"name": _digest(typed)}
    _tell_sign_ins(minute.count(subject, address), subject=subject, address=address, **name)


def confirmation_failed(request: HttpRequest) -> None:
    """Record that a signed-in person gave a wrong password when asked for it again."""
    actor, address = actors.of_user(request.user), client_address(request)
    count = minute.count("confirmation", actor.id, address)
    if _is_told(count):
        data = {"address": address, "count": count}
        event_log.record("user.confirmation_failed", subject=actor.id, by=actor, data=data)


def factor_refused(request: HttpRequest, user: User, method: str) -> None:
    """Record that a second factor of this person was refused, at a sign-in or a confirmation."""
    subject, address = f"user:{user.pk}", client_address(request)
    count = minute.count("factor", subject, method, address)
    if _is_told(count):
        data = {"address": address, "method": str(method), "count": count}
        event_log.record("user.factor_refused", subject=subject, by=actors.SYSTEM, data=data)


def _tell_sign_ins(count: int, *, subject: str, **data: str) -> None:
    if _is_told(count):
        event_log.record("user.sign_in_failed", subject=subject, by=actors.SYSTEM, data={**data, "count": count})


def _is_told(count: int) -> bool:
    """Tell whether the count is a power of ten, which is recorded."""
    return str(count).strip("0") == "1"


def client_address(request: HttpRequest) -> str:
    """Return the client's address, as events have it."""
    return address_of(request)[:60]


def _digest(typed: str) -> str:
    # The salt is no path: with another one, what was tried before would be told as another name.
    return salted_hmac("config.sign_ins", typed, algorithm="sha256").hexdigest()[:16]
