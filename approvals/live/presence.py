"""Records who has a gate in sight, and tells others who have. A courtesy whose loss costs nothing, so no event."""

from __future__ import annotations

from django.contrib.auth.models import User

from approvals.models import Looking

from . import ephemeral


def look(socket: str, gate_id: int, *, by: User) -> None:
    """Record that a socket's page has this gate in sight. The caller has checked that the person may see it."""
    for changed in Looking.objects.look(gate_id, by=by, socket=socket):
        ephemeral.whisper(ephemeral.LOOKING, changed)


def away(socket: str) -> None:
    """Record that the page has no gate in sight any more."""
    for changed in Looking.objects.away(socket):
        ephemeral.whisper(ephemeral.LOOKING, changed)
