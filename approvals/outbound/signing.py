"""Secrets of webhooks, and signatures by them (Standard Webhooks, symmetric: HMAC-SHA256).

Signing needs the secret itself, so a digest of it would not do. Yet none is stored: it is derived from the
installation's secret key and a random salt in the webhook's row whenever it is needed, so that a copy of the database
can sign nothing. The row also names the key, so that a change of the secret key is noticed instead of signing wrongly;
while the earlier key is among HOLDPOINT_OLD_SECRET_KEYS, its webhooks go on.
"""

from __future__ import annotations

import secrets
from base64 import b64encode
from collections.abc import Sequence
from datetime import datetime

from django.conf import settings
from django.utils.crypto import salted_hmac
from standardwebhooks.webhooks import Webhook as Signer

PREFIX = "whsec_"
SALT = 32  # bytes


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
    return {
        "webhook-id": message,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": signed,
    }


def _derived(key: str, salt: bytes) -> str:
    return (
        PREFIX
        + b64encode(salted_hmac("holdpoint.webhook.secret", salt, secret=key, algorithm="sha256").digest()).decode()
    )


def _name(key: str) -> str:
    return salted_hmac("holdpoint.webhook.key", b"", secret=key, algorithm="sha256").hexdigest()[:16]
