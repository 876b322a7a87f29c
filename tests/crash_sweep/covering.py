"""A part of all combinations in which still every value of one factor meets every value of every other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from itertools import combinations
from typing import TypeVar

Combined = TypeVar("Combined", bound=tuple[Hashable, ...])
Pair = tuple[tuple[int, Hashable], ...]


def covering(cases: Sequence[Combined]) -> list[Combined]:
    """Return few of the cases that have all pairs of all cases: each time one that has most of the missing ones.

    Of those that have as many it is one whose pairs were chosen least, so that no value is tried with one other alone.
    """
    chosen: list[Combined] = []
    times = Counter[Pair]()
    missing = pairs(cases)
    while missing:
        best = max(cases, key=lambda case: (len(missing & pairs([case])), -sum(times[pair] for pair in pairs([case]))))
        chosen.append(best)
        times.update(pairs([best]))
        missing -= pairs([best])
    return chosen


def pairs(cases: Iterable[tuple[Hashable, ...]]) -> set[Pair]:
    """Return every pair of values that stand in one case, each with its place in it."""
    return {pair for case in cases for pair in combinations(enumerate(case), 2)}
