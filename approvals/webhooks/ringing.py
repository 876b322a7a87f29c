"""Wakes workers to send, by functions registered here. Without any, the sweeper finds what is due."""

from __future__ import annotations

from collections.abc import Callable, Iterable

Bell = Callable[[int], bool]
_bells: list[Bell] = []


def register(bell: Bell) -> None:
    """Register a function that wakes a worker: it gets a delivery's number, and returns whether a message went out."""
    if bell not in _bells:
        _bells.append(bell)


def ring(deliveries: Iterable[int]) -> None:
    """Wake a worker for each of these; where one call fails, the rest are left to the sweeper."""
    for number in deliveries:
        if not all(bell(number) for bell in _bells):
            return
