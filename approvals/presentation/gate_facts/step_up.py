"""Prepares a page's words about the confirmation of who decides."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.utils import timezone

from approvals.policy.step_up import ANY, PASSKEY, Confirmed, counts, possible, within


@dataclass(frozen=True)
class StepUp:
    """A confirmation that is needed, or was given."""

    until: datetime | None  # the time until which it counts; None where it has to be given
    possible: bool  # whether this account has what to confirm with
    passkey: bool = False  # whether only a passkey counts


def asked(user: User, confirmed: Confirmed | None, method: str = ANY) -> StepUp:
    """Tell whether this person has lately confirmed who they are, and whether they can."""
    lately = (
        confirmed.last(method) if confirmed and counts(confirmed, by=user, now=timezone.now(), asked=method) else None
    )
    able = lately is not None or (user.has_usable_password() and method == ANY) or possible(user, method)
    return StepUp(until=lately[1] + within() if lately else None, possible=able, passkey=method == PASSKEY)
