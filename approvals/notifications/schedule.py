"""Computes when a message that did not arrive is sent again. Pure."""

from __future__ import annotations

from collections.abc import Sequence

SPREAD = 0.2  # part of a pause, to either side, so that messages that failed together are not retried together
PATIENCE = 24 * 3600.0  # seconds; the longest pause that a receiver can ask for by Retry-After


def spent(tries: int, pauses: Sequence[float]) -> bool:
    """Tell whether it was tried as often as its pauses allow, so that one whose senders die does not go on for ever."""
    return tries > len(pauses)


def pause(tries: int, pauses: Sequence[float], *, spread: float, asked: float | None = None) -> float | None:
    """Return the seconds until the next try after `tries` of them; None where there is no next.

    `spread`: a random number from -1 to 1; `asked`: the receiver's Retry-After, which can only lengthen the pause.
    """
    if spent(tries, pauses):
        return None
    chosen = pauses[tries - 1] * (1 + SPREAD * spread)
    return max(chosen, min(asked, PATIENCE)) if asked is not None else chosen
