"""Time limits on the agent's own code."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from agents.errors import StepTimeout
from agents.session.heartbeat import HEART, ClaimBeat


@contextmanager
def limited(beat: ClaimBeat, seconds: float | None) -> Iterator[None]:
    """Raise StepTimeout inside the block after `seconds`, and again every second while it is swallowed.

    An alarm needs the main thread; elsewhere, and when code ignores it, the heartbeat kills the process.
    """
    if not seconds:
        yield
        return
    armed = True

    def ring(number: int, frame: FrameType | None) -> None:
        if armed:
            raise StepTimeout(f"The step ran past its time limit of {seconds:g} s.")

    HEART.limit(beat, seconds)
    main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGALRM, ring) if main else None
    try:
        if main:
            signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
        yield
    finally:
        armed = False
        if main:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        HEART.limit(beat, None)


@contextmanager
def unalarmed() -> Iterator[None]:
    """Hold the alarm back inside the block: an exception amid a database query would cost the connection."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
