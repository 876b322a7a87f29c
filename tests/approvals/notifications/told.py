"""Time that passes for notices, and what became of them."""

from __future__ import annotations

import datetime as dt

from django.db.models.functions import Now

from approvals.models import ChannelState, Gate, Message
from approvals.notifications import fan_out

SOON = dt.timedelta(seconds=1)


def fanned() -> None:
    """Turn all events that are there into notices."""
    while fan_out.fan_out():
        pass


def rows(gate: Gate) -> list[tuple[str, str, str, str]]:
    """(kind, first name, status, code) of each notice of the gate, in order."""
    found = Message.objects.filter(gate=gate).order_by("pk")
    return list(found.values_list("kind", "user__first_name", "status", "word"))


def due(**which: object) -> None:
    """What waits is due now, and each channel has rested."""
    Message.objects.pending().filter(**which).update(next_attempt_at=Now() - SOON)
    ChannelState.objects.update(paused_until=None)


def abandoned() -> None:
    """Whoever sends has been silent for too long."""
    Message.objects.filter(busy_until__isnull=False).update(busy_until=Now() - SOON)
    ChannelState.objects.update(busy_until=None, paused_until=None)


def people(gate: Gate, kind: str) -> set[str]:
    return set(Message.objects.filter(gate=gate, kind=kind).values_list("user__first_name", flat=True))
