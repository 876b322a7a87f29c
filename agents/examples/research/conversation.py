"""Keeps a conversation within its context: older turns become a summary."""

from __future__ import annotations

from collections.abc import Sequence

from .state import Turn

CONTEXT = 160  # characters of turns that are kept as they are
FIRST = 60  # characters of each older turn that its summary keeps


def trimmed(turns: Sequence[Turn], most: int = CONTEXT) -> list[Turn]:
    """Return the newest turns that fit into `most` characters, after one turn that sums the older ones up."""
    kept: list[Turn] = []
    left = most
    for turn in reversed(turns):
        if len(turn.text) > left and kept:
            break
        kept.insert(0, turn)
        left -= len(turn.text)
    older = turns[: len(turns) - len(kept)]
    if not older:
        return kept
    summary = " / ".join(f"{turn.role}: {turn.text[:FIRST]}" for turn in older)
    return [Turn(role="summary", text=summary), *kept]
