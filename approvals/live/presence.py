"""Records who has a gate in sight, which tells others, and what they saw of it. A courtesy, so without events."""

from __future__ import annotations

from django.contrib.auth.models import User

from approvals.models import GateVisit, Looking

from . import ephemeral


def look(socket: str, gate_id: int, *, by: User, proposal: int = 0) -> None:
    """Record that a socket's page has this gate in sight. The caller has checked that the person may see it.

    `proposal`: the version that it shows, where that is to be remembered as seen.
    """
    if proposal:
        GateVisit.objects.look(gate_id, by=by, proposal=proposal)
    for changed in Looking.objects.look(gate_id, by=by, socket=socket):
        ephemeral.whisper(ephemeral.LOOKING, changed)


def away(socket: str) -> None:
    """Record that the page has no gate in sight any more."""
    for changed in Looking.objects.away(socket):
        ephemeral.whisper(ephemeral.LOOKING, changed)
