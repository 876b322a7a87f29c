"""Prepares a page's words about the password confirmation."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.utils import timezone

from approvals.policy.step_up import PasswordConfirmed, counts, within


@dataclass(frozen=True)
class StepUp:
    """A password confirmation that is needed, or was given."""

    until: datetime | None  # the time until which it counts; None where it has to be given
    possible: bool  # whether this account has a password


def asked(user: User, confirmed: PasswordConfirmed | None) -> StepUp:
    """Tell whether this person has confirmed it lately, and whether they can."""
    lately = confirmed if counts(confirmed, by=user, now=timezone.now()) else None
    return StepUp(until=lately.at + within() if lately else None, possible=user.has_usable_password())
