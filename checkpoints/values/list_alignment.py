"""Aligns two lists: finds the items that were kept, moved, changed, added or removed. Pure.

Equal items are found by their canonical bytes. Of the rest, an item of the old list and one of the new count as one
changed item if they share the most members, in order; past `PAIRED` items simply in order, so that the cost is linear
in the length of long lists.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

PAIRED = 40  # items on either side whose similarity is measured


@dataclass(frozen=True, slots=True)
class AlignedItem:
    """One item. `old` and `new` are its places; None if it is not in that list."""

    old: int | None
    new: int | None
    same: bool = False
    moved: bool = False  # its order among the remaining items has changed


def shared_ends(old: Sequence[object], new: Sequence[object]) -> tuple[int, int]:
    """Count the items that the two lists share at their head, and at their tail."""
    most = min(len(old), len(new))
    head = next((i for i in range(most) if old[i] != new[i]), most)
    return head, next((i for i in range(most - head) if old[-1 - i] != new[-1 - i]), most - head)


def align_items(
    old: Sequence[Any], new: Sequence[Any], keys: tuple[Sequence[bytes], Sequence[bytes]]
) -> list[AlignedItem]:
    """Pair the items of both lists, by place in the new one, then what was removed. `keys` are canonical bytes."""
    equal = _equal(*keys)
    taken = set(equal.values())
    rest = [at for at in range(len(old)) if at not in taken]
    more = [at for at in range(len(new)) if at not in equal]
    changed = dict(_alike([(at, old[at]) for at in rest], [(at, new[at]) for at in more]))
    whole = {**equal, **changed}
    still = set(find_rising_run([whole[at] for at in sorted(whole)]))
    found = [
        AlignedItem(whole[at], at, same=at in equal, moved=whole[at] not in still)
        if at in whole
        else AlignedItem(None, at)
        for at in range(len(new))
    ]
    kept = set(whole.values())
    return found + [AlignedItem(at, None) for at in range(len(old)) if at not in kept]


def find_rising_run(numbers: Sequence[int]) -> list[int]:
    """Find a longest run of rising numbers among numbers that are all different."""
    tails: list[int] = []
    ends: list[int] = []  # where the best run of each length ends
    before: list[int] = []
    for at, number in enumerate(numbers):
        length = bisect_left(tails, number)
        tails[length : length + 1] = [number]
        ends[length : length + 1] = [at]
        before.append(ends[length - 1] if length else -1)
    found, at = [], ends[-1] if ends else -1
    while at >= 0:
        found.append(numbers[at])
        at = before[at]
    return found[::-1]


def _equal(old: Sequence[bytes], new: Sequence[bytes]) -> dict[int, int]:
    """Map new place -> old place of equal items, each taken once."""
    places: dict[bytes, list[int]] = {}
    for at in range(len(old) - 1, -1, -1):
        places.setdefault(old[at], []).append(at)
    return {at: places[key].pop() for at, key in enumerate(new) if places.get(key)}


def _alike(old: Sequence[tuple[int, Any]], new: Sequence[tuple[int, Any]]) -> Iterator[tuple[int, int]]:
    """Yield (new place, old place) of items that were changed, in order."""
    if len(old) > PAIRED or len(new) > PAIRED:
        yield from ((n, o) for (o, _), (n, _) in zip(old, new, strict=False))
        return
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in range(len(old) - 1, -1, -1):
        for j in range(len(new) - 1, -1, -1):
            paired = best[i + 1][j + 1] + likeness(old[i][1], new[j][1])
            best[i][j] = max(paired, best[i + 1][j], best[i][j + 1])
    i = j = 0
    while i < len(old) and j < len(new):
        if best[i][j] == best[i + 1][j + 1] + likeness(old[i][1], new[j][1]):
            yield new[j][0], old[i][0]
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1


def likeness(item: Any, other: Any) -> float:
    """Measure how much two items share; always above 0, so that a pair beats a removal and an addition."""
    if isinstance(item, dict) and isinstance(other, dict):
        return 0.01 + sum(1 for name, value in item.items() if name in other and other[name] == value)
    return 0.01 if type(item) is type(other) else 0.005
