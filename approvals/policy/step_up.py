"""Step-up: where a policy asks for it, only people who lately confirmed who they are may decide.

They confirm it by their password, or by a passkey or a code of their authenticator app where they have one; a policy
may take a passkey alone. Making a token asks for it too, since a token works long after the session has ended, and so
does setting a password, with which one could confirm anything.

The evidence is only in the session in which it was given: allauth notes there, with the person's id, by which method a
signed-in person confirmed it. Signing in does not count, nor does a recovery code, which is for a device that was
lost. A decision by a token has no session, and so no evidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from allauth.account.authentication import get_authentication_records
from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.urls import reverse

from approvals.accounts import factors
from approvals.accounts.factors import ProofMethod, moment_of, of_record
from approvals.models import Policy

AHEAD = timedelta(minutes=1)  # a web server's clock may be ahead of the database's by this much
ANY, PASSKEY = Policy.StepUpMethod.ANY, Policy.StepUpMethod.PASSKEY
COUNTING = {
    ANY: frozenset({ProofMethod.PASSWORD, ProofMethod.PASSKEY, ProofMethod.CODE}),
    PASSKEY: frozenset({ProofMethod.PASSKEY}),
}


@dataclass(frozen=True)
class Confirmed:
    """The confirmations of one person in a session: by each method, the last."""

    user_id: int
    moments: Mapping[ProofMethod, datetime]

    def last(self, asked: str = ANY) -> tuple[ProofMethod, datetime] | None:
        """Return the newest confirmation by a method that counts where `asked` is asked for."""
        found = [(method, at) for method, at in self.moments.items() if method in COUNTING[Policy.StepUpMethod(asked)]]
        return max(found, key=lambda each: each[1], default=None)


def within() -> timedelta:
    """Return how long a confirmation counts."""
    return timedelta(minutes=settings.HOLDPOINT_STEP_UP_MINUTES)


def of_session(request: HttpRequest) -> Confirmed | None:
    """Find the signed-in person's last confirmations in this very session."""
    user = request.user
    if not isinstance(user, User):
        return None
    moments: dict[ProofMethod, datetime] = {}
    for record in get_authentication_records(request, user):
        method = of_record(record)
        at = moment_of(record) if method and record.get("reauthenticated") is True else None
        if method and at:
            moments[method] = max(at, moments.get(method, at))
    return Confirmed(user.pk, moments) if moments else None


def counts(confirmed: Confirmed | None, *, by: User, now: datetime, asked: str = ANY) -> bool:
    """Tell whether this person lately confirmed who they are, by a method that counts."""
    last = confirmed.last(asked) if confirmed is not None and confirmed.user_id == by.pk else None
    return last is not None and -AHEAD <= now - last[1] < within()


def evidence(confirmed: Confirmed | None, asked: str) -> dict[str, Any]:
    """Return what a decision's event says of the confirmation that was asked for."""
    last = confirmed.last(asked) if confirmed else None
    return {"confirmed": last[1].isoformat(), "confirmed_by": str(last[0])} if last else {}


def possible(user: User, asked: str = ANY) -> bool:
    """Tell whether this account has anything that it can confirm with."""
    if asked == PASSKEY:
        return factors.has_passkey(user)
    return user.has_usable_password() or factors.has_any(user)


def address(back: str, asked: str = ANY) -> str:
    """Return the address of the confirmation, which leads back to the address `back` on this site."""
    name = "mfa_reauthenticate_webauthn" if asked == PASSKEY else "account_reauthenticate"
    return reverse(name) + "?" + urlencode({"next": back})
