"""Stores sessions under a digest of their key, looks up only well-formed keys, and reads the person of a session.

A cookie holds the key, so whoever read one from a table or a backup would be signed in by it. A digest of it is of no
use to them. Keys are random, so that a plain one cannot be guessed from its digest.

Strangers can write any cookie. One with a NUL in it, which PostgreSQL takes in no text, would cause a server error.

The person is read by a statement that is built once, as every request of a page reads them. Only a session that plainly
verifies is taken here. Any other is left to Django, which knows retired secrets and ends sessions that are void, so
that nobody is signed in whom it would refuse.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from functools import partial
from typing import Any

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.auth.models import User
from django.contrib.sessions.backends import db
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.base_session import AbstractBaseSession
from django.contrib.sessions.models import Session
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.utils.functional import SimpleLazyObject

from checkpoints.postgresql.prepared_rows import prepared_statement


class SessionStore(db.SessionStore):
    """Django's session store, which accepts only keys as it makes them: small letters and digits."""

    # Django's own methods would look up the key itself; these use the methods below.
    aload, aexists, acreate = SessionBase.aload, SessionBase.aexists, SessionBase.acreate
    asave, adelete = SessionBase.asave, SessionBase.adelete

    def exists(self, session_key: str) -> bool:
        """Tell whether there is a session of this key."""
        return super().exists(digest_of_key(session_key))

    def create_model_instance(self, data: dict[str, Any]) -> AbstractBaseSession:
        """Make the row, under the key's digest."""
        made = super().create_model_instance(data)
        made.session_key = digest_of_key(made.session_key)
        return made

    def delete(self, session_key: str | None = None) -> None:
        """Remove the session of this key, or this one."""
        if key := session_key or self.session_key:
            super().delete(digest_of_key(key))

    def _get_session_from_db(self) -> Session | None:
        found = _unexpired(digest_of_key(self.session_key or ""), timezone.now())
        if not found:
            self._session_key = None
        return found[0] if found else None

    def _validate_session_key(self, key: str | None) -> bool:
        return bool(key) and is_key(str(key))


@prepared_statement
def _unexpired(key: Any, now: Any) -> QuerySet[Session]:
    return Session.objects.filter(session_key=key, expire_date__gt=now)


def digest_of_key(key: str) -> str:
    """Return the SHA-256 of a session's key, cut to the 240 bits that the column holds."""
    return urlsafe_b64encode(hashlib.sha256(key.encode()).digest()).decode()[:40]


def is_key(text: str) -> bool:
    """Tell whether this can be the key of a session."""
    return 8 <= len(text) <= 40 and text.isascii() and text.isalnum() and text == text.lower()


class PreparedAuthentication(AuthenticationMiddleware):
    """Django's middleware with `person_of`, which is asked when a view first needs the person."""

    def process_request(self, request: HttpRequest) -> None:
        """Set the request's person."""
        super().process_request(request)
        request.user = SimpleLazyObject(partial(person_of, request))  # type: ignore[assignment]


def person_of(request: HttpRequest) -> Any:
    """Return the person signed in by the request's session, or AnonymousUser, as `get_user` of Django does."""
    session = request.session
    number, verifies = session.get(SESSION_KEY), session.get(HASH_SESSION_KEY)
    if number and verifies and session.get(BACKEND_SESSION_KEY) in settings.AUTHENTICATION_BACKENDS:
        for person in _people(int(number)):
            if person.is_active and constant_time_compare(verifies, person.get_session_auth_hash()):
                return person
    return get_user(request)


@prepared_statement
def _people(number: Any) -> QuerySet[User]:
    return User.objects.filter(pk=number)
