"""One agent's work, the same for every store: a conversation that grows by 1 KB a step beside a 50 KB document.

Each step appends a message and replaces a cursor of about 200 bytes. The words come from Python's own manual, cut
into short phrases and shuffled, so that they compress about as well as people's texts. It uses only the standard
library, since peers run it in their own environments.
"""

from __future__ import annotations

import random
import uuid
from pydoc_data.topics import topics
from typing import Any

MESSAGE, DOCUMENT = 900, 50_000  # bytes of text
SPEAKERS = ("person", "agent", "tool")


def phrases() -> list[str]:
    """Return the manual in phrases of two to five words."""
    rng = random.Random(11)
    words = " ".join(topics[name] for name in sorted(topics)).split()
    parts, at = [], 0
    while at < len(words):
        length = rng.randint(2, 5)
        parts.append(" ".join(words[at : at + length]))
        at += length
    return parts


def prose(rng: random.Random, known: list[str], size: int) -> str:
    """Make about `size` characters of text."""
    parts: list[str] = []
    length = 0
    while length < size:
        parts.append(rng.choice(known))
        length += len(parts[-1]) + 1
    return " ".join(parts)[:size]


class Workload:
    """The work: `document`, and for each of `steps` steps one of `messages` and one of `cursors`."""

    def __init__(self, steps: int) -> None:
        rng, known = random.Random(1), phrases()
        self.steps = steps
        self.document = {"name": "handbook", "text": prose(rng, known, DOCUMENT)}
        self.messages = [
            {
                "id": str(uuid.UUID(int=rng.getrandbits(128))), "from": SPEAKERS[n % 3], "at": 1_760_000_000 + n * 7.25,
                "text": prose(rng, known, MESSAGE), "tokens": rng.randrange(100, 400),
            }
            for n in range(steps)
        ]  # fmt: skip
        self.cursors: list[dict[str, Any]] = []
        for n in range(steps):
            call = {"tool": "search", "id": str(uuid.UUID(int=rng.getrandbits(128))), "took": rng.randrange(900)}
            cursor = {"step": n, "phase": "collecting what is known", "left": 100_000 - n * 31}
            self.cursors.append({**cursor, "call": call, "score": n / 7})
