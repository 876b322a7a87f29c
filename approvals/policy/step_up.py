"""Step-up: where a policy asks for it, only people who confirmed their password lately may decide.

Making a token asks for it too, since a token works long after the session has ended, and so does setting a password,
with which one could confirm anything.

The evidence is only in the session in which the password was given: allauth notes there, with the person's id, when a
signed-in person confirmed it. A decision by a token has no session, and so no evidence.
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

AHEAD = timedelta(minutes=1)  # a web server's clock may be ahead of the database's by this much


@dataclass(frozen=True)
class PasswordConfirmed:
    """A confirmed password: by whom, and when."""

    user_id: int
    at: datetime


def within() -> timedelta:
    """Return how long a confirmation counts."""
    return timedelta(minutes=settings.HOLDPOINT_STEP_UP_MINUTES)


def of_session(request: HttpRequest) -> PasswordConfirmed | None:
    """Find the signed-in person's last confirmation in this very session; signing in does not count."""
    user = request.user
    if not isinstance(user, User):
        return None
    moments = [found for each in get_authentication_records(request, user) if (found := _moment(each)) is not None]
    return PasswordConfirmed(user.pk, max(moments)) if moments else None


def _moment(record: Any) -> datetime | None:
    """Return the time of a session's record if it confirms a password; None for any other record."""
    if not isinstance(record, Mapping) or record.get("reauthenticated") is not True:
        return None
    try:
        return datetime.fromtimestamp(record["at"], UTC)
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        return None


def counts(confirmed: PasswordConfirmed | None, *, by: User, now: datetime) -> bool:
    """Tell whether this person confirmed their password lately."""
    return confirmed is not None and confirmed.user_id == by.pk and -AHEAD <= now - confirmed.at < within()


def address(back: str) -> str:
    """Return the address of the password confirmation, which leads back to the address `back` on this site."""
    return reverse("account_reauthenticate") + "?" + urlencode({"next": back})
