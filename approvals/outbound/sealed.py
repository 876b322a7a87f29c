"""Seals texts that must come back in full, as an address that is a secret itself, before they are stored (Fernet).

The key is derived from the installation's secret key, so that a copy of the database can send nothing. While an earlier
key is among HOLDPOINT_OLD_SECRET_KEYS, what was sealed with it can be opened.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.utils.crypto import salted_hmac


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
