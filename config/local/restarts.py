"""The pauses after which a part of the stack that has ended by itself is started again."""

from __future__ import annotations

from dataclasses import dataclass

FIRST, LONGEST = 1.0, 30.0  # seconds until it is started again
SETTLED = 60.0  # seconds of life after which the next pause is the first one again


@dataclass
class Revival:
    """One part: the time of its start, its last pause, the time of its restart (None: it runs). Monotonic seconds."""

    began: float = 0.0
    pause: float = 0.0
    due: float | None = None

    def ended(self, now: float) -> float:
        """Note that the part has ended; return the pause until it is started again."""
        settled = now - self.began >= SETTLED
        self.pause = FIRST if settled or not self.pause else min(LONGEST, 2 * self.pause)
        self.due = now + self.pause
        return self.pause

    def started(self, now: float) -> None:
        """Note that the part was started."""
        self.began, self.due = now, None
