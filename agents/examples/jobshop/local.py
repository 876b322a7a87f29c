"""Repairs a schedule locally: operations that must wait are shifted right, then neighbours are swapped.

The shift keeps every machine's order and no operation starts before its planned time. Then neighbours on a machine
are swapped, at first only those that the breakdown hit, then in rings around them: each operation's neighbours in
its job and on its machine are one ring further out. A swap is kept if the schedule ends sooner, or as soon with fewer
operations off their planned time. The rings and the number of schedules that are tried are bounded, so that the same
input always gives the same repair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from .breakdown import Situation
from .shop import fitted

Orders = list[list[int]]
Worth = tuple[int, int, int]  # end of the last operation, operations off their planned time, by how much in all


@dataclass
class Repaired:
    """The start of each operation, how many swaps stayed, and how many schedules were tried for them."""

    starts: list[int]
    swaps: int = 0
    tried: int = 0


def shifted(situation: Situation) -> list[int]:
    """Return the starts of the right-shift: every machine's order stays, and whatever must wait waits."""
    starts = timed(situation, situation.orders, frozenset())
    if starts is None:
        raise AssertionError("the orders of a schedule wait in a circle")
    return starts


def repaired(situation: Situation, *, radius: int, limit: int) -> Repaired:
    """The right-shift, made better by swaps up to `radius` rings from what was hit; at most `limit` are tried."""
    best, rings = Repaired(shifted(situation)), _rings(situation)
    orders = [list(order) for order in situation.orders]
    loose: frozenset[int] = frozenset()  # the operations that changed places
    for ring in range(radius + 1):
        before = -1
        while best.swaps > before and best.tried < limit:
            before = best.swaps
            for order in orders:
                for at in range(len(order) - 1):
                    pair = order[at], order[at + 1]
                    near = all(rings.get(op, ring + 1) <= ring for op in pair)
                    off = any(best.starts[op] != situation.planned[op] for op in pair)
                    if not (near and off) or best.tried >= limit:
                        continue
                    best.tried += 1
                    order[at], order[at + 1] = order[at + 1], order[at]
                    starts = timed(situation, orders, loose | set(pair))
                    if starts is not None and worth(situation, starts) < worth(situation, best.starts):
                        best.starts, loose = starts, loose | set(pair)
                        best.swaps += 1
                    else:
                        order[at], order[at + 1] = order[at + 1], order[at]
    return best


def timed(situation: Situation, orders: Orders, loose: frozenset[int]) -> list[int] | None:
    """The start of each operation under these orders of the open ones; None where they wait in a circle.

    None starts before it was planned to, but those that are `loose`: they may as soon as the machine stopped.
    """
    plant, fixed = situation.plant, situation.fixed
    starts = [fixed[op][0] if op in fixed else -1 for op in range(len(plant))]
    previous: dict[int, int] = {op: at for order in orders for at, op in pairwise(order)}
    following = {at: op for op, at in previous.items()}
    waits = {op: (op in previous) + (plant.before(op) >= 0 and plant.before(op) not in fixed) for op in situation.free}
    ready = [op for op in situation.free if not waits[op]]
    placed = 0
    while ready:
        op = ready.pop()
        placed += 1
        earliest = situation.down.since if op in loose else situation.planned[op]
        if (before := plant.before(op)) >= 0:
            earliest = max(earliest, situation.end(before, starts[before]))
        if op in previous:
            earliest = max(earliest, starts[previous[op]] + plant.duration[previous[op]])
        duration = plant.duration[op]
        starts[op] = fitted(earliest, duration, situation.blocks[plant.machine[op]]) if duration else earliest
        for after in (plant.after(op), following.get(op, -1)):
            if after >= 0:
                waits[after] -= 1
                if not waits[after]:
                    ready.append(after)
    return starts if placed == len(situation.free) else None


def worth(situation: Situation, starts: Sequence[int]) -> Worth:
    """Rate a schedule; the smaller the better."""
    off = [abs(start - planned) for start, planned in zip(starts, situation.planned, strict=True)]
    return situation.makespan(starts), sum(1 for each in off if each), sum(off)


def _rings(situation: Situation) -> dict[int, int]:
    """By operation, how many neighbours it is away from what was hit: in its job and in its machine's planned order."""
    plant = situation.plant
    beside = {op: {near for near in (plant.before(op), plant.after(op)) if near >= 0} for op in range(len(plant))}
    for order in plant.in_order(range(len(plant)), situation.planned):
        for op, near in pairwise(order):
            beside[op].add(near)
            beside[near].add(op)
    found = dict.fromkeys(situation.hit, 0)
    edge = list(found)
    for op in edge:  # grows while it is walked
        for near in sorted(beside[op]):
            if near not in found:
                found[near] = found[op] + 1
                edge.append(near)
    return found
