"""What a repair changed: which operations start at another time, and which came to another place in line."""

from __future__ import annotations

from collections.abc import Sequence

from .shop import Plant


def retimed(planned: Sequence[int], starts: Sequence[int]) -> set[int]:
    """The operations that start at another time than planned."""
    return {op for op, (was, now) in enumerate(zip(planned, starts, strict=True)) if was != now}


def resequenced(plant: Plant, planned: Sequence[int], starts: Sequence[int]) -> set[int]:
    """The operations that have to be taken out and put elsewhere to get from the old orders to the new ones.

    On each machine those that kept their time also kept their order, and are left where they are; of the others as
    few as can be are taken out, which leaves the longest run that kept its order.
    """
    before = plant.in_order(range(len(plant)), planned)
    after = plant.in_order(range(len(plant)), starts)
    found: set[int] = set()
    for old, new in zip(before, after, strict=True):
        place = {op: at for at, op in enumerate(old)}
        stands = [planned[op] == starts[op] for op in new]
        kept = _heaviest_rise([place[op] for op in new], stands)
        found |= {op for at, op in enumerate(new) if at not in kept}
    return found


def _heaviest_rise(values: Sequence[int], favoured: Sequence[bool]) -> set[int]:
    """The places of an increasing subsequence with the most favoured places, and among those of a longest one."""
    weights: list[tuple[int, int]] = []  # (favoured places, places) of the best that ends at each
    back: list[int] = []
    for at, value in enumerate(values):
        earlier = [(weights[other], other) for other in range(at) if values[other] < value]
        (favour, length), came = max(earlier, default=((0, 0), -1))
        weights.append((favour + favoured[at], length + 1))
        back.append(came)
    found: set[int] = set()
    at = max(range(len(values)), key=lambda at: weights[at], default=-1)
    while at >= 0:
        found.add(at)
        at = back[at]
    return found
