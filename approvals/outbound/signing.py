"""Secrets of webhooks, signatures by them (Standard Webhooks, symmetric: HMAC-SHA256), and texts that are sealed.

Signing needs the secret itself, so a digest of it would not do. Yet none is stored: it is derived from the
installation's secret key and a random salt in the webhook's row whenever it is needed, so that a copy of the database
can sign nothing. The row also names the key, so that a change of the secret key is noticed instead of signing wrongly.

A text that must come back in full, as an address that is a secret itself, is sealed before it is stored (Fernet), by a
key derived from the same one. While an earlier key is among HOLDPOINT_OLD_SECRET_KEYS, its webhooks go on, and what was
sealed with it can be opened.
"""

from __future__ import annotations

import secrets
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.utils.crypto import salted_hmac
from standardwebhooks.webhooks import Webhook as Signer

PREFIX = "whsec_"
SALT = 32  # bytes


def seal(text: str) -> str:
    """Encrypt a text; each time it reads differently."""
    return _box().encrypt(text.encode()).decode()


def unseal(sealed: str) -> str | None:
    """Return the text; None where the key that it was sealed with is gone, or it was altered."""
    try:
        return _box().decrypt(sealed.encode()).decode()
    except InvalidToken:
        return None


def _box() -> MultiFernet:
    return _cipher_of((settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS))


@lru_cache(4)
def _cipher_of(keys: tuple[str, ...]) -> MultiFernet:
    derived = (salted_hmac("holdpoint.sealed", b"", secret=key, algorithm="sha256").digest() for key in keys)
    return MultiFernet([Fernet(urlsafe_b64encode(item)) for item in derived])


def make() -> tuple[str, bytes, str]:
    """Make a new secret: (name of the key, salt, secret)."""
    salt = secrets.token_bytes(SALT)
    return _name(settings.SECRET_KEY), salt, _derived(settings.SECRET_KEY, salt)


def secret_of(key: str, salt: bytes) -> str | None:
    """Return the secret that was made with the key of this name; None where that key is no longer known."""
    for known in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS):
        if _name(known) == key:
            return _derived(known, salt)
    return None


def headers(message: str, body: bytes, *, at: datetime, by: Sequence[str]) -> dict[str, str]:
    """Return the headers of a message, signed with each of these secrets."""
    signed = " ".join(Signer(secret).sign(message, at, body.decode()) for secret in by)
    return {"webhook-id": message, "webhook-timestamp": str(int(at.timestamp())), "webhook-signature": signed}


def _derived(key: str, salt: bytes) -> str:
    return (
        PREFIX
        + b64encode(salted_hmac("holdpoint.webhook.secret", salt, secret=key, algorithm="sha256").digest()).decode()
    )


def _name(key: str) -> str:
    return salted_hmac("holdpoint.webhook.key", b"", secret=key, algorithm="sha256").hexdigest()[:16]
