"""Seals the rows of second factors, and encrypts the secrets in them.

Such a row lets somebody sign in. One that was written or changed by other means than these pages (a passkey moved to
another account, a used recovery code made unused) has no seal that verifies, and then none of that person's factors
count until an administrator removes it: nobody gets in, instead of the wrong one.

Seals and encryption are by the secret key; keys before it still open what they sealed, and `reseal` renews that.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64encode
from typing import Any

from allauth.mfa.models import Authenticator
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.utils.translation import gettext as _

from checkpoints.values import canonical_json

SEAL = "seal"


class Tampered(PermissionDenied):
    """A row of a second factor that was not written by these pages."""


def sealed(row: Authenticator) -> bool:
    """Tell whether the row is as these pages wrote it."""
    found = row.data.get(SEAL) if isinstance(row.data, dict) else None
    return isinstance(found, str) and any(hmac.compare_digest(found, each) for each in _seals(row))


def seal(sender: Any, instance: Authenticator, update_fields: Any = None, raw: bool = False, **_signal: Any) -> None:
    """Seal a row before it is saved; Django's `pre_save` calls it. Raises Tampered for one that was broken before."""
    if raw or (update_fields is not None and "data" not in update_fields):
        return
    stored = Authenticator.objects.filter(pk=instance.pk).first() if instance.pk else None
    if stored is not None and not sealed(stored):
        raise Tampered(_("A second factor of this account was changed outside Holdpoint."))
    instance.data[SEAL] = next(iter(_seals(instance)))


def encrypt(text: str) -> str:
    """Encrypt a secret for its row."""
    return _cipher().encrypt(text.encode()).decode()


def decrypt(text: str) -> str:
    """Return a row's secret. Raises Tampered for what none of the keys encrypted."""
    try:
        return _cipher().decrypt(text.encode()).decode()
    except InvalidToken as junk:
        raise Tampered(_("A second factor of this account cannot be read.")) from junk


def reseal(row: Authenticator) -> None:
    """Encrypt and seal a row anew, by the newest key. Raises Tampered."""
    if not sealed(row):
        raise Tampered(_("A second factor of this account was changed outside Holdpoint."))
    for name in ("secret", "seed"):
        if name in row.data:
            row.data[name] = encrypt(decrypt(row.data[name]))
    row.save(update_fields=["data"])


def _seals(row: Authenticator) -> list[str]:
    """Return the seals that the row may have, that of the newest key first."""
    said = {name: each for name, each in row.data.items() if name != SEAL}
    content = canonical_json.canonical({"user": row.user_id, "type": str(row.type), "data": said})
    return [hmac.new(_key(key, "seal"), content, hashlib.sha256).hexdigest() for key in _secrets()]


def _cipher() -> MultiFernet:
    return MultiFernet([Fernet(urlsafe_b64encode(_key(key, "cipher"))) for key in _secrets()])


def _secrets() -> list[str]:
    return [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]


def _key(secret: str, purpose: str) -> bytes:
    return hmac.new(secret.encode(), f"holdpoint second factors: {purpose}".encode(), hashlib.sha256).digest()
