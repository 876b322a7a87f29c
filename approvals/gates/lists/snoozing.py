"""Puts a gate off for one person. It comes back by itself, and always before its deadline."""

from __future__ import annotations

from datetime import datetime, time, timedelta

from django.utils import timezone

from approvals.errors import Refused
from approvals.models import Gate, Snooze

SPARE = timedelta(minutes=15)  # before the deadline, at which a gate comes back at the latest
LONGEST = timedelta(days=90)
MORNING = time(9)
HOUR, TOMORROW, WEEK = "hour", "tomorrow", "week"
CHOICES = (HOUR, TOMORROW, WEEK)


class NotPutOff(Refused):
    """A snooze that was refused; the message says why."""


def until_of(choice: str, *, now: datetime) -> datetime:
    """Return the end of a choice in the reader's zone, in which `now` is: in an hour, tomorrow or on Monday at nine."""
    if choice == HOUR:
        return now + timedelta(hours=1)
    days = 1 if choice == TOMORROW else 7 - now.weekday()
    return timezone.make_aware(datetime.combine(now.date() + timedelta(days=days), MORNING), now.tzinfo)


def put_off(gate: Gate, *, by: int, until: datetime) -> Snooze:
    """Put a gate off for a person until then, or until shortly before its deadline. Raises NotPutOff."""
    now = timezone.now()
    if gate.status != Gate.Status.OPEN:
        raise NotPutOff("The gate is closed; there is nothing to put off.")
    if until <= now:
        raise NotPutOff("Choose a time that is still to come.")
    if until > now + LONGEST:
        raise NotPutOff("Choose a time within the next 90 days.")
    if gate.deadline is not None and until > gate.deadline - SPARE:
        until = gate.deadline - SPARE
        if until <= now:
            raise NotPutOff("It is due within 15 minutes, so it stays. Decide it now, or let it expire.")
    made, _new = Snooze.objects.update_or_create(user_id=by, gate=gate, defaults={"until": until})
    return made


def shortened(snooze: Snooze) -> bool:
    """Tell whether a snooze ends because the gate's deadline comes."""
    return snooze.gate.deadline is not None and snooze.until == snooze.gate.deadline - SPARE


def bring_back(gate: Gate, *, by: int) -> None:
    """End a person's snooze of a gate."""
    Snooze.objects.filter(user=by, gate=gate).delete()
