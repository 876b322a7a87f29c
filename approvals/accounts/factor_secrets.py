"""Encrypts the secrets in the rows of second factors, so that a copy of the database makes no codes.

The secret key encrypts; keys before it still open what they encrypted, and `renew` encrypts that anew. It hides them
from readers alone: whoever may write these rows may write the passwords beside them.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64encode
from typing import Any

from allauth.mfa.models import Authenticator
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

from checkpoints.values import canonical_json

NAMES = ("secret", "seed")  # of an app, of recovery codes
SEAL = "seal"


class SecretUnreadable(Exception):
    """None of the keys encrypted this secret."""


def encrypt(text: str) -> str:
    """Encrypt a secret for its row."""
    return _cipher().encrypt(text.encode()).decode()


def decrypt(text: str) -> str:
    """Return a row's secret. Raises SecretUnreadable."""
    try:
        return _cipher().decrypt(text.encode()).decode()
    except InvalidToken as junk:
        raise SecretUnreadable from junk


def is_readable(row: Authenticator) -> bool:
    """Tell whether a code can be compared with the row's secret; a passkey has none."""
    try:
        secrets = [decrypt(str(row.data[name])) for name in NAMES if name in row.data]
    except SecretUnreadable:
        return False
    return bool(secrets) or row.type == Authenticator.Type.WEBAUTHN


def renew(row: Authenticator) -> None:
    """Encrypt a row's secrets by the newest key. Raises SecretUnreadable."""
    row.data |= {name: encrypt(decrypt(row.data[name])) for name in NAMES if name in row.data}
    row.save(update_fields=["data"])


def seal_factor(sender: Any, instance: Authenticator, raw: bool = False, **_signal: Any) -> None:
    """Seal a row before it is saved, as the release before does, whose processes refuse one without during an update.

    Nothing here reads the seals. The next release drops this.
    """
    if not raw:
        data = {name: value for name, value in instance.data.items() if name != SEAL}
        content = canonical_json.encode_canonical({"user": instance.user_id, "type": str(instance.type), "data": data})
        instance.data[SEAL] = hmac.new(_key(settings.SECRET_KEY, "seal"), content, hashlib.sha256).hexdigest()


def _cipher() -> MultiFernet:
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return MultiFernet([Fernet(urlsafe_b64encode(_key(key, "cipher"))) for key in keys])


def _key(secret: str, purpose: str) -> bytes:
    return hmac.new(secret.encode(), f"holdpoint second factors: {purpose}".encode(), hashlib.sha256).digest()
