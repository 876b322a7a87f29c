"""Named crash points: no-ops, until a test's environment turns one into a sleep, an error or a kill -9.

`HOLDPOINT_CRASH="after_effect:kill"`; a third part is the hit it happens at (1 by default), a fourth a flag file:
once that file is there the point is passed without harm, so that the next process goes on.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from pathlib import Path

POINTS = (
    "after_claim",
    "before_step",
    "after_step",
    "after_intent",
    "after_effect",
    "before_save",
    "after_save",
    "before_gate",
    "after_gate",
    "before_outcome",
    "after_outcome",
)
_hits: Counter[str] = Counter()


class Crashed(BaseException):
    """Raised by a crash point whose action is `raise`; nothing in the runner catches it."""


def point(name: str) -> None:
    """Do here what HOLDPOINT_CRASH asks for; nothing without it."""
    wish = os.environ.get("HOLDPOINT_CRASH")
    if not wish:
        return
    wanted, action, *rest = wish.split(":", 3)
    if wanted != name:
        return
    _hits[name] += 1
    if _hits[name] == int(rest[0] if rest else "1") and _first(rest[1] if len(rest) > 1 else ""):
        _act(action)


def _first(flag: str) -> bool:
    if not flag:
        return True
    try:
        Path(flag).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _act(action: str) -> None:
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif action == "sleep":
        time.sleep(3600)
    else:
        raise Crashed
