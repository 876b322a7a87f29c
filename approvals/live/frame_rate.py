"""Limits the frames that one socket may send. A page sends one when what it shows changes, a few times a minute."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

AT_ONCE = 120  # frames
A_SECOND = 4.0  # frames added to the bucket


@dataclass
class FrameRate:
    """A token bucket of frames."""

    left: float = AT_ONCE
    since: float = field(default_factory=time.monotonic)

    def allows(self, *, now: float | None = None) -> bool:
        """Take one frame from the bucket; return whether there was one."""
        now = time.monotonic() if now is None else now
        self.left = min(self.left + (now - self.since) * A_SECOND, AT_ONCE)
        self.since = now
        if self.left < 1:
            return False
        self.left -= 1
        return True
