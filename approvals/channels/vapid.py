"""The key by which push services know this installation (VAPID, RFC 8292)."""

from __future__ import annotations

import time
from email.utils import parseaddr
from functools import lru_cache
from urllib.parse import urlsplit

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from django.conf import settings
from py_vapid import Vapid
from py_vapid.utils import b64urlencode

LASTS = 12 * 3600  # seconds that a signature is valid; push services allow a day


def make() -> str:
    """Make a private key, as the setting takes it."""
    number = ec.generate_private_key(ec.SECP256R1()).private_numbers().private_value
    return str(b64urlencode(number.to_bytes(32)))


def public_key() -> str:
    """Return the public key, as browsers take it when they subscribe; "" where no key is set."""
    return _public(settings.HOLDPOINT_VAPID_KEY) if settings.HOLDPOINT_VAPID_KEY else ""


def headers(endpoint: str) -> dict[str, str]:
    """Return the header by which the endpoint's push service knows who sends, and whom to write to about it."""
    parts = urlsplit(endpoint)
    _, mail = parseaddr(settings.DEFAULT_FROM_EMAIL)
    claims = {
        "aud": f"{parts.scheme}://{parts.netloc}",
        "exp": int(time.time()) + LASTS,
        "sub": f"mailto:{mail}",
    }
    signed: dict[str, str] = _key(settings.HOLDPOINT_VAPID_KEY).sign(claims)
    return {name.lower(): value for name, value in signed.items()}


@lru_cache(2)
def _key(private: str) -> Vapid:
    return Vapid.from_string(private)


@lru_cache(2)
def _public(private: str) -> str:
    encoding, point = serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
    return str(b64urlencode(_key(private).public_key.public_bytes(encoding, point)))
