"""Merges two changes of one sequence, stretch by stretch. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple


class MergedStretch(NamedTuple):
    """A stretch of the sequence as it was, as the one made it, and as the other did."""

    was: Sequence[str]
    mine: Sequence[str]
    theirs: Sequence[str]

    @property
    def merged(self) -> Sequence[str] | None:
        """Return the stretch after both changes; None where they oppose each other."""
        if self.mine in (self.theirs, self.was):
            return self.theirs
        return self.mine if self.theirs == self.was else None


def merge_stretches(base: Sequence[str], mine: Sequence[str], theirs: Sequence[str]) -> Iterator[MergedStretch]:
    """Yield the stretches in order; changes that nothing unchanged parts are one stretch, as in `diff3`."""
    sides = [_changes(base, mine), _changes(base, theirs)]
    ends, at = [0, 0], 0  # where each side and the base go on
    while sides[0] or sides[1]:
        low = high = min(changes[0][0] for changes in sides if changes)
        taken: list[list[tuple[int, int, int]]] = [[], []]
        while touching := [side for side in (0, 1) if sides[side] and sides[side][0][0] <= high]:
            side = min(touching, key=lambda side: sides[side][0][0])
            taken[side].append(sides[side].pop(0))
            high = max(high, taken[side][-1][1])
        starts = [end + low - at for end in ends]
        # What a side changed moved the rest of it.
        stops = [start + high - low + sum(grown for *_, grown in taken[side]) for side, start in enumerate(starts)]
        yield from _same(base[at:low])
        yield MergedStretch(base[low:high], mine[starts[0] : stops[0]], theirs[starts[1] : stops[1]])
        ends, at = stops, high
    yield from _same(base[at:])


def _same(part: Sequence[str]) -> Iterator[MergedStretch]:
    if part:
        yield MergedStretch(part, part, part)


def _changes(base: Sequence[str], side: Sequence[str]) -> list[tuple[int, int, int]]:
    """List (from, to, by how many items it grew) for each change, by places in `base`."""
    found = SequenceMatcher(None, base, side).get_opcodes()
    return [(a, b, d - c - (b - a)) for verb, a, b, c, d in found if verb != "equal"]
