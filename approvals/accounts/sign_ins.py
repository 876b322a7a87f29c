"""Lists where a person is signed in: begun, used, moved to another key, and ended, from here or elsewhere.

Ending one deletes Django's session, which its cookie then no longer opens, and tells the open pages of it at once. No
messages are pushed to its browser any more. Ending all ends the messages in every other browser, known here or not.
Sessions from before this list existed have no row in it; "all others" finds them by what they hold.

It also makes the links by which people set a new password: each works once, for PASSWORD_RESET_TIMEOUT seconds.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import timedelta
from threading import Lock
from typing import Any

from allauth.account.utils import user_pk_to_url_str
from cachetools import TTLCache
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import Exists, Max, OuterRef
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse
from django.utils import timezone

from approvals.middleware import PROBED, Respond
from approvals.models import SignedIn
from approvals.sessions import SessionStore, digest_of_key
from checkpoints import actors
from checkpoints.actors import Actor
from checkpoints.events import event_log
from checkpoints.models import Event

from . import pushed

MARK = "hp-listed"  # in the session: it has a row here
SEEN_EVERY = timedelta(minutes=5)  # how exactly a page says when a session was last used
# The first that is found names it: most browsers also name those that they resemble.
BROWSERS = (
    ("Edg", "Edge"), ("OPR/", "Opera"), ("SamsungBrowser/", "Samsung Internet"), ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"), ("CriOS/", "Chrome"), ("Chrome/", "Chrome"), ("Safari/", "Safari"), ("curl/", "curl"),
)  # fmt: skip
SYSTEMS = (
    ("iPhone", "iPhone"), ("iPad", "iPad"), ("Android", "Android"), ("Windows", "Windows"), ("Mac OS X", "Mac"),
    ("CrOS", "ChromeOS"), ("Linux", "Linux"),
)  # fmt: skip
_seen: TTLCache[str, bool] = TTLCache(100_000, SEEN_EVERY.total_seconds(), timer=time.monotonic)
_lock = Lock()


def begin(request: HttpRequest, user: User, *, methods: Iterable[str], by: Actor, address: str) -> None:
    """List the session that was just opened, and write the event of the sign-in."""
    if not request.session.session_key:
        request.session.save()
    method = "+".join(methods)
    with transaction.atomic():
        SignedIn.objects.update_or_create(
            session_key=digest_of_key(request.session.session_key or ""),
            defaults={
                "user": user, "address": address, "method": method,
                "browser": request.headers.get("User-Agent", "").replace("\0", "")[:300],
            },
        )  # fmt: skip
        event_log.record("user.signed_in", subject=by.id, by=by, data={"address": address, "method": method})
    request.session[MARK] = True
    pushed.signed_in(request, user)
    _note(request.session.session_key or "")


def middleware(get_response: Respond) -> Respond:
    """Note that sessions are used, as they open pages."""

    def respond(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        if request.path_info not in PROBED and hasattr(request, "session") and request.session.accessed:
            seen(request)
        return response

    return respond


def seen(request: HttpRequest) -> None:
    """Note that a listed session is used; each process writes it once in SEEN_EVERY."""
    key = request.session.session_key
    if key and request.session.get(MARK) and _note(key):
        SignedIn.objects.filter(session_key=digest_of_key(key)).update(seen_at=Now())


def renew(request: HttpRequest) -> None:
    """Give the session another key, which nobody knows who knew the old one."""
    before = request.session.session_key
    request.session.cycle_key()
    moved(request, before)


def moved(request: HttpRequest, before: str | None) -> None:
    """Keep the list right after the session got another key."""
    key = request.session.session_key
    if before and key and before != key:
        SignedIn.objects.filter(session_key=digest_of_key(before)).update(session_key=digest_of_key(key))


def open_sessions(user: User) -> list[SignedIn]:
    """List a person's sessions that still open pages, the one used last first."""
    rows = list(SignedIn.objects.of(user))
    valid = _valid(user, [row.session_key for row in rows])
    return [row for row in rows if row.session_key in valid]


@transaction.atomic
def end(user: User, number: int, *, by: Actor) -> bool:
    """End one session of this person; False where there is none of this number."""
    row = SignedIn.objects.select_for_update().filter(user=user, pk=number).first()
    if row is None:
        return False
    _end(user, {row.session_key}, by=by)
    return True


@transaction.atomic
def end_all(user: User, *, by: Actor, but: SessionBase | None = None) -> int:
    """End all sessions of a person, those without a row here too, except `but`; returns how many."""
    keys = set(SignedIn.objects.select_for_update().filter(user=user).values_list("session_key", flat=True))
    keys = (_valid(user, keys) | _unlisted(user)) - (
        {digest_of_key(but.session_key)} if but and but.session_key else set()
    )
    if keys:
        _end(user, keys, by=by)
    pushed.end_all(user, but=but)
    return len(keys)


def end_current(request: HttpRequest, user: User) -> None:
    """Take the session off the list as its person signs out."""
    by = actors.of_user(user)
    pushed.end(user, [request.session])
    SignedIn.objects.filter(session_key=digest_of_key(request.session.session_key or "")).delete()
    event_log.record("user.session_ended", subject=by.id, by=by, data={"count": 1})


def _end(user: User, keys: set[str], *, by: Actor) -> None:
    found = Session.objects.filter(session_key__in=keys)
    pushed.end(user, [SessionStore().decode(row.session_data) for row in found])
    found.delete()
    SignedIn.objects.filter(session_key__in=keys).delete()
    event_log.record("user.session_ended", subject=f"user:{user.pk}", by=by, data={"count": len(keys)})


def _valid(user: User, keys: Iterable[str]) -> set[str]:
    """Select the sessions that are not over: not expired, and of the password that the account has now."""
    found = Session.objects.filter(session_key__in=list(keys), expire_date__gt=timezone.now())
    return {row.session_key for row in found if _belongs_to(user, row)}


def _unlisted(user: User) -> set[str]:
    listed = SignedIn.objects.filter(session_key=OuterRef("session_key"))
    found = Session.objects.filter(~Exists(listed), expire_date__gt=timezone.now())
    return {row.session_key for row in found.iterator() if _belongs_to(user, row)}


def _belongs_to(user: User, row: Session) -> bool:
    values: dict[str, Any] = SessionStore().decode(row.session_data)
    hashes = [user.get_session_auth_hash(), *user.get_session_auth_fallback_hash()]
    return str(values.get(SESSION_KEY)) == str(user.pk) and values.get(HASH_SESSION_KEY) in hashes


def _note(key: str) -> bool:
    """Tell whether the use of this session is not noted yet, and note it."""
    with _lock:
        new = key not in _seen
        _seen[key] = True
    return new


def name_browser(agent: str) -> str:
    """Write `Firefox on Linux` of a User-Agent. For a person's own list alone: anybody can write anything there."""
    browser = next((name for mark, name in BROWSERS if mark in agent), "")
    system = next((name for mark, name in SYSTEMS if mark in agent), "")
    if browser and system:
        return f"{browser} on {system}"
    return browser or system or "Unknown browser"


class LinkKeys(PasswordResetTokenGenerator):
    """Makes the keys of links.

    Django's are void once their person signs in, or their password or address changes. These are too once anything of
    the account changes: one that was switched off is shut for links of before when it is on again.
    """

    def _make_hash_value(self, user: Any, timestamp: int) -> str:
        changed = Event.objects.filter(kind="user.changed", subject=f"user:{user.pk}").aggregate(last=Max("pk"))["last"]
        return f"{super()._make_hash_value(user, timestamp)}{changed or ''}{'' if user.is_active else 'off'}"


def reset_path(user: User) -> str:
    """Return the path of a new link."""
    named = {"uidb36": user_pk_to_url_str(user), "key": LinkKeys().make_token(user)}
    return reverse("account_reset_password_from_key", kwargs=named)
