"""A file that a process touches while it does its work, so that a health check has nothing to start and nobody to ask.

The sweeper touches it after each pass that went through, a worker from the event loop in which it takes messages, beat
after each message that Redis took. A loop that hangs, or has lost its server, touches nothing; a worker whose
processes are all busy with long steps still turns its loop, and is well. `config/health/probe.py` looks at the age.
"""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

EVERY = 5.0  # seconds between a worker's touches


def touch() -> None:
    """Say that this process works, in the file of HOLDPOINT_HEARTBEAT if any. Raises OSError where it cannot."""
    if settings.HOLDPOINT_HEARTBEAT:
        Path(settings.HOLDPOINT_HEARTBEAT).touch()
