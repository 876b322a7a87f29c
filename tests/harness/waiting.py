"""Waiting for something to become true, with a bound and a reason."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
PATIENCE = 60.0  # seconds: generous, because a bound that is not reached costs nothing
PAUSE = 0.02


def until(condition: Callable[[], T], *, within: float = PATIENCE, what: str = "") -> T:
    """Call `condition` until its result is truthy, and return it; fail after `within` seconds, naming `what`.

    A condition that takes long to compute is asked less often: what it waits for needs the processor too.
    """
    deadline = time.monotonic() + within
    while True:
        asked = time.monotonic()
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError(
                f"not within {within:g} s: {what or getattr(condition, '__name__', condition)}; last: {result!r}"
            )
        time.sleep(min(max(PAUSE, 3 * (time.monotonic() - asked)), 0.25))
