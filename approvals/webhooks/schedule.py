"""When a message that did not arrive is sent again. Pure."""

from __future__ import annotations

from collections.abc import Sequence

SPREAD = 0.2  # of a pause, to either side: what failed together comes back apart
PATIENCE = 24 * 3600.0  # seconds; no receiver puts a message off for longer by Retry-After


def spent(tries: int, pauses: Sequence[float]) -> bool:
    """Tell whether it was tried too often for its pauses: one whose workers die must not go on for good."""
    return tries > len(pauses) + 1


def pause(tries: int, pauses: Sequence[float], *, spread: float, asked: float | None = None) -> float | None:
    """Return the seconds until the next try after `tries` of them; None where there is no next.

    `spread` is a number from -1 to 1, by chance; `asked` what the receiver asks for, which makes a pause longer only.
    """
    if tries > len(pauses):
        return None
    chosen = pauses[tries - 1] * (1 + SPREAD * spread)
    return max(chosen, min(asked, PATIENCE)) if asked is not None else chosen
