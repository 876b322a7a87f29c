"""The pauses after which a part of the stack that has ended by itself is started again, and what is said about it.

The supervisor keeps a file of the parts that are down, which /readyz reads: it has no database and no Redis of its own,
and either may be what is down.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

FIRST, LONGEST = 1.0, 30.0  # seconds until it is started again
SETTLED = 60.0  # seconds of life after which the next pause is the first one again
FILE = "restarts.json"


class PartDown(TypedDict):
    """A part that is down: how often it has ended without settling in between, and when it is started next."""

    restarts: int
    next: float  # seconds of Unix time


@dataclass
class Revival:
    """One part: the time of its start, its last pause, the time of its restart (None: it runs). Monotonic seconds."""

    began: float = 0.0
    pause: float = 0.0
    due: float | None = None
    restarts: int = 0

    def ended(self, now: float) -> float:
        """Note that the part has ended; return the pause until it is started again."""
        settled = now - self.began >= SETTLED or not self.pause
        self.pause = FIRST if settled else min(LONGEST, 2 * self.pause)
        self.restarts = 1 if settled else self.restarts + 1
        self.due = now + self.pause
        return self.pause

    def started(self, now: float) -> None:
        """Note that the part was started."""
        self.began, self.due = now, None


def keep(home: Path, revivals: Mapping[str, Revival]) -> None:
    """Keep which parts are down; without any there is no file. Raises OSError."""
    now, wall = time.monotonic(), time.time()
    down = {
        name: PartDown(restarts=revival.restarts, next=wall + revival.due - now)
        for name, revival in revivals.items()
        if revival.due is not None
    }
    if not down:
        (home / FILE).unlink(missing_ok=True)
        return
    draft = home / f".{FILE}"
    draft.write_text(json.dumps(down))
    os.replace(draft, home / FILE)


def describe_parts_down(home: Path) -> str:
    """Say which parts are down and when each is started next; "" for none, or where no supervisor keeps a file."""
    try:
        down: dict[str, PartDown] = json.loads((home / FILE).read_text())
    except (OSError, ValueError):
        return ""
    now = time.time()
    return "; ".join(
        f"{name} has ended, restart {item['restarts']} in {max(0.0, item['next'] - now):.0f} s"
        for name, item in sorted(down.items())
    )
