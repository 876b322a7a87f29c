"""The health file: a process touches it while it works, so that a health check only has to look at its age.

The sweeper touches it after each completed pass, a worker from the event loop in which it takes messages, beat after
each message that Redis took. A loop that hangs, or has lost its server, touches nothing; a worker whose processes are
all busy with long steps still runs its loop, and is healthy. `config/health/probe.py` looks at the age.
"""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

EVERY = 5.0  # seconds between a worker's touches


def touch() -> None:
    """Touch the file that HOLDPOINT_HEARTBEAT names, if any. Raises OSError."""
    if settings.HOLDPOINT_HEARTBEAT:
        Path(settings.HOLDPOINT_HEARTBEAT).touch()
