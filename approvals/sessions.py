"""Stores sessions in the database under a digest of their key, and looks up only well-formed keys.

A cookie holds the key, so whoever read one from a table or a backup would be signed in by it. A digest of it is of no
use to them. Keys are random, so that a plain one cannot be guessed from its digest.

Strangers can write any cookie. One with a NUL in it, which PostgreSQL takes in no text, would cause a server error.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from typing import Any

from django.contrib.sessions.backends import db
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.base_session import AbstractBaseSession
from django.contrib.sessions.models import Session
from django.db.models import QuerySet
from django.utils import timezone

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
