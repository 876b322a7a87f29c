"""What a repair changed: which operations start at another time, and which came to another place in line."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from .jobshop_shop import Plant


def retimed(planned: Sequence[int], starts: Sequence[int]) -> set[int]:
    """The operations that start at another time than planned."""
    return {op for op, (was, now) in enumerate(zip(planned, starts, strict=True)) if was != now}


def resequenced(plant: Plant, planned: Sequence[int], starts: Sequence[int]) -> set[int]:
    """The fewest operations that have to be taken out and put elsewhere to get from the old orders to the new ones.

    On each machine those are all but a longest run that kept its order.
    """
    before = plant.in_order(range(len(plant)), planned)
    after = plant.in_order(range(len(plant)), starts)
    found: set[int] = set()
    for old, new in zip(before, after, strict=True):
        place = {op: at for at, op in enumerate(old)}
        kept = _longest_rise([place[op] for op in new])
        found |= {op for at, op in enumerate(new) if at not in kept}
    return found


def _longest_rise(values: Sequence[int]) -> set[int]:
    """The places of a longest increasing subsequence (patience sorting)."""
    tops: list[int] = []  # place of the smallest value that ends a rise of each length
    heights: list[int] = []
    back = [-1] * len(values)
    for at, value in enumerate(values):
        length = bisect_left(heights, value)
        back[at] = tops[length - 1] if length else -1
        tops[length : length + 1], heights[length : length + 1] = [at], [value]
    found, at = set(), tops[-1] if tops else -1
    while at >= 0:
        found.add(at)
        at = back[at]
    return found
