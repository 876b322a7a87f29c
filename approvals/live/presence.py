"""Who has a gate in sight, told to the others who have: a courtesy that is never lost money, so that it is no event."""

from __future__ import annotations

from django.contrib.auth.models import User

from approvals.models import Looking

from . import ephemeral


def look(socket: str, gate_id: int, *, by: User) -> None:
    """Note that the page behind a socket has this gate in sight. Whether the person may see it the caller has asked."""
    for changed in Looking.objects.look(gate_id, by=by, socket=socket):
        ephemeral.whisper(ephemeral.LOOKING, changed)


def away(socket: str) -> None:
    """Note that the page has no gate in sight any more."""
    for changed in Looking.objects.away(socket):
        ephemeral.whisper(ephemeral.LOOKING, changed)
