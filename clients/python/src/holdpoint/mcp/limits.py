"""Waits that end in time: at their limit, or when the process is about to stop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import anyio

WAIT = 25.0  # seconds: Claude Code's MCP_TIMEOUT is 30 by default
LATE = 10_000  # calls that are kept for whoever makes them again
REST = 2.0  # seconds of it in which the answer is read, handed out and sent


class Late(dict[str, str]):
    """A dictionary of the newest entries."""

    def __setitem__(self, name: str, value: str) -> None:
        super().__setitem__(name, value)
        while len(self) > LATE:
            del self[next(iter(self))]


class Limits:
    """Limits how long a call waits for people; `leave` ends every wait, each of which then answers that it is open."""

    def __init__(self, wait: float = WAIT) -> None:
        if not 0 < wait <= 3600:
            raise ValueError(f"A call can wait for more than 0 and at most 3600 seconds, not for {wait:g}.")
        self.wait = wait
        self.waiting: set[anyio.CancelScope] = set()
        self.late = Late()  # calls that were answered before people had decided, by their content

    @property
    def patient(self) -> float:
        """Return the seconds after which a wait ends by itself, in time for its answer."""
        return self.wait - self.rest

    @property
    def rest(self) -> float:
        """Return the seconds after that until the limit."""
        return min(REST, self.wait / 2)

    @contextmanager
    def within(self) -> Iterator[anyio.CancelScope]:
        """Cut what is inside at the limit: the scope's `cancelled_caught` tells."""
        with anyio.move_on_after(self.wait) as scope:
            self.waiting.add(scope)
            try:
                yield scope
            finally:
                self.waiting.discard(scope)

    def leave(self) -> None:
        """End every wait now."""
        for scope in tuple(self.waiting):
            scope.cancel()
