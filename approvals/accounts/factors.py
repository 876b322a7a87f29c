"""The second factors of a person: what they have, and the events when one comes, goes or is refused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from django.contrib.auth.models import User
from django.db import transaction

from checkpoints.actors import Actor
from checkpoints.events import event_log

from . import factor_secrets
from .methods import FACTORS, WORDS, ProofMethod


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
        return str(WORDS[self.method])


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
    sound = factor_secrets.is_readable(row)
    method, left = FACTORS[row.type], None
    name = str(WORDS[method]).capitalize()
    if method == ProofMethod.PASSKEY:
        name = str(row.data.get("name") or "Passkey")
    if sound and method == ProofMethod.RECOVERY_CODE:
        left = len(RecoveryCodes(row).get_unused_codes())
    return Factor(row.pk, method, name, row.created_at, row.last_used_at, sound, left)
