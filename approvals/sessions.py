"""Sessions in the database, asked for only by keys that can be one.

A cookie is a stranger's to write. One with a NUL in it, which PostgreSQL takes in no text, would be an error of ours.
"""

from __future__ import annotations

from django.contrib.sessions.backends import db


class SessionStore(db.SessionStore):
    """Django's, with its keys read as strictly as they are made: small letters and digits."""

    def _validate_session_key(self, key: str | None) -> bool:
        return bool(key) and is_key(str(key))


def is_key(text: str) -> bool:
    """Whether this can be the key of a session."""
    return 8 <= len(text) <= 40 and text.isascii() and text.isalnum() and text == text.lower()
