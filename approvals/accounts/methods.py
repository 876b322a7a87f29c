"""Names the ways to prove who one is, from the records that allauth keeps of them in a session. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any


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
    return " and ".join(str(WORDS.get(part, part)) for part in methods.split("+") if part)
