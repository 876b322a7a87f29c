"""How many frames one socket may send: a page asks when what it shows changes, which is a few times a minute."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

AT_ONCE = 120  # frames
A_SECOND = 4.0  # more of them that come to be allowed


@dataclass
class FrameRate:
    """A bucket of frames that fills again as time goes by."""

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
