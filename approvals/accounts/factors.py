"""The second factors of a person: what they have, and the events when one comes, goes or is refused.

The ways to prove who one is have their names here, from the records that allauth keeps of them in a session.

The secrets in the rows are encrypted, so that a copy of the database makes no codes. The secret key encrypts; keys
before it still open what they encrypted, and `renew` encrypts that anew. It hides them from readers alone: whoever may
write these rows may write the passwords beside them.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from checkpoints.actors import Actor
from checkpoints.events import event_log
from checkpoints.values import canonical_json

NAMES = ("secret", "seed")  # of an app, of recovery codes
SEAL = "seal"


class ProofMethod(StrEnum):
    """A way to prove who one is, as events name it."""

    PASSWORD = "password"  # noqa: S105 - a word
    PASSKEY = "passkey"
    CODE = "code"  # of an authenticator app
    RECOVERY_CODE = "recovery_code"
    PROVIDER = "provider"  # single sign-on


FACTORS = {
    "webauthn": ProofMethod.PASSKEY,
    "totp": ProofMethod.CODE,
    "recovery_codes": ProofMethod.RECOVERY_CODE,
}  # allauth's types
SECOND_FACTORS = frozenset(FACTORS.values())
WORDS: Mapping[str, str] = {
    ProofMethod.PASSWORD: "password",
    ProofMethod.PASSKEY: "passkey",
    ProofMethod.CODE: "code from an app",
    ProofMethod.RECOVERY_CODE: "recovery code",
    ProofMethod.PROVIDER: "single sign-on",
}


def of_record(record: Any) -> ProofMethod | None:
    """Return the method of a session's record; None for any other content."""
    if not isinstance(record, Mapping):
        return None
    match record.get("method"):
        case "password":
            return ProofMethod.PASSWORD
        case "socialaccount":
            return ProofMethod.PROVIDER
        case "mfa":
            return FACTORS.get(str(record.get("type")))
    return None


def of_records(records: Iterable[Any]) -> list[ProofMethod]:
    """List the methods of a session's records, each once, in their order."""
    return list(dict.fromkeys(method for record in records if (method := of_record(record))))


def moment_of(record: Mapping[str, Any]) -> datetime | None:
    """Return the time of a record; None for junk."""
    try:
        return datetime.fromtimestamp(record["at"], UTC)
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        return None


def in_words(methods: str) -> str:
    """Write methods as a page does: `password and passkey`; they are joined by "+" in rows and events."""
    return " and ".join(WORDS.get(part, part) for part in methods.split("+") if part)


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


@dataclass(frozen=True)
class Factor:
    """One of a person's second factors. `sound`: its secret can be read; `unused_codes`: of recovery codes."""

    pk: int
    method: ProofMethod
    name: str
    made_at: datetime
    used_at: datetime | None
    sound: bool
    unused_codes: int | None = None

    @property
    def word(self) -> str:
        return WORDS[self.method]


def list_factors(user: User) -> list[Factor]:
    """List a person's factors, passkeys first, then the app, then recovery codes."""
    order = list(ProofMethod)
    found = [_factor(row) for row in Authenticator.objects.filter(user=user).order_by("pk")]
    return sorted(found, key=lambda factor: order.index(factor.method))


def has_any(user: User) -> bool:
    """Tell whether a person signs in with a second factor; one that cannot be read counts too."""
    rows = Authenticator.objects.filter(user=user)
    return bool(rows.exclude(type=Authenticator.Type.RECOVERY_CODES).exists())


def has_passkey(user: User) -> bool:
    """Tell whether a person has a passkey."""
    return bool(Authenticator.objects.filter(user=user, type=Authenticator.Type.WEBAUTHN).exists())


@transaction.atomic
def remove(user: User, numbers: Iterable[int], *, by: Actor, address: str = "") -> list[ProofMethod]:
    """Remove these factors of a person, with recovery codes that are left alone; returns which there were."""
    locked = {row.pk: row for row in Authenticator.objects.select_for_update().filter(user=user)}
    gone = [row for number in numbers if (row := locked.pop(number, None))]
    if not any(row.type != Authenticator.Type.RECOVERY_CODES for row in locked.values()):
        gone += locked.values()
    Authenticator.objects.filter(pk__in=[row.pk for row in gone]).delete()
    methods = [FACTORS[row.type] for row in gone]
    for row, method in zip(gone, methods, strict=True):
        record("user.factor_removed", user, by=by, factor=method, number=row.pk, address=address)
    return methods


def record(kind: str, user: User, *, by: Actor, **data: Any) -> None:
    """Write the event of a change of a person's factors; it names no secret and no label."""
    event_log.record(kind, subject=f"user:{user.pk}", by=by, data=data)


def _factor(row: Authenticator) -> Factor:
    sound = is_readable(row)
    method, left = FACTORS[row.type], None
    name = WORDS[method].capitalize()
    if method == ProofMethod.PASSKEY:
        name = str(row.data.get("name") or "Passkey")
    if sound and method == ProofMethod.RECOVERY_CODE:
        left = len(RecoveryCodes(row).get_unused_codes())
    return Factor(row.pk, method, name, row.created_at, row.last_used_at, sound, left)
