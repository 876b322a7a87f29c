"""Asking a worker to send: by whoever can ring, which registers itself here. Without one the sweeper's comes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

Bell = Callable[[int], bool]
_bells: list[Bell] = []


def register(bell: Bell) -> None:
    """Ring by this: it gets a delivery's number, and says whether the message went out."""
    if bell not in _bells:
        _bells.append(bell)


def ring(deliveries: Iterable[int]) -> None:
    """Ring for each of these; where the first is not taken, the rest are left to the sweeper."""
    for number in deliveries:
        if not all(bell(number) for bell in _bells):
            return
