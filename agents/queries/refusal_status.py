"""The HTTP status that answers a refused order."""

from __future__ import annotations

from agents.errors import NeedsConfirmation, RewindNotAllowed, RewindRefused


def status_of(refusal: RewindRefused) -> int:
    """Return the status that answers a refused order: 409 where the run is the reason, 422 where what was typed is."""
    if isinstance(refusal, RewindNotAllowed):
        return 403
    return 422 if refusal.errors or isinstance(refusal, NeedsConfirmation) else 409
