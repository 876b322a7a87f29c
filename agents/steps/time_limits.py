"""Time limits on the agent's own code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from agents.session.heartbeat import HEART, ClaimBeat

from . import alarms


@contextmanager
def limited(beat: ClaimBeat, seconds: float | None) -> Iterator[None]:
    """Raise StepTimeout inside the block after `seconds`, and again every second while it is swallowed.

    Code that ignores it, or that it cannot reach, is ended by the heartbeat.
    """
    if not seconds:
        yield
        return
    alarm = alarms.made(seconds)
    HEART.limit(beat, seconds, alarm.ring)
    try:
        with alarms.armed(alarm):
            yield
    finally:
        HEART.limit(beat, None)
