"""Step-up: where a policy asks for it, only those may decide who gave their password again lately.

So does making a token, which goes on opening what its owner may do long after the session has ended, and setting a
password, with which whoever sets it confirms whatever they like.

Evidence of that is in the session in which it was given, and nowhere else: allauth notes there, with the person's id,
when a signed-in person confirmed their password. Whoever decides by a token has no session, so no evidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from allauth.account.authentication import get_authentication_records
from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.urls import reverse

AHEAD = timedelta(minutes=1)  # a web server's clock may be before the database's by so much


@dataclass(frozen=True)
class PasswordConfirmed:
    """Somebody gave their password again: who, and when."""

    user_id: int
    at: datetime


def within() -> timedelta:
    """Return for how long a confirmation counts."""
    return timedelta(minutes=settings.HOLDPOINT_STEP_UP_MINUTES)


def of_session(request: HttpRequest) -> PasswordConfirmed | None:
    """Find the signed-in person's last confirmation in this very session; signing in is none."""
    user = request.user
    if not isinstance(user, User):
        return None
    moments = [found for each in get_authentication_records(request, user) if (found := _moment(each)) is not None]
    return PasswordConfirmed(user.pk, max(moments)) if moments else None


def _moment(record: Any) -> datetime | None:
    """Return when a record of the session says that a password was confirmed; None where it says anything else."""
    if not isinstance(record, Mapping) or record.get("reauthenticated") is not True:
        return None
    try:
        return datetime.fromtimestamp(record["at"], UTC)
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        return None


def counts(confirmed: PasswordConfirmed | None, *, by: User, now: datetime) -> bool:
    """Tell whether this person gave their password lately."""
    return confirmed is not None and confirmed.user_id == by.pk and -AHEAD <= now - confirmed.at < within()


def address(back: str) -> str:
    """Return the address where the password is asked for, which leads back to the address `back` on this site."""
    return reverse("account_reauthenticate") + "?" + urlencode({"next": back})
