"""Orders and times a shop's operations: the first schedule, and after a breakdown one that moves as few as it can.

The first orders are those of an active schedule (B. Giffler and G. L. Thompson, Operations Research 8, 1960): of the
operations that could run next, the one that could end first determines the machine, and a rule chooses among those that
conflict with it there.

At a breakdown, operations that have begun keep their start; the one that was under way on the machine goes on when it
is back. All others may get a new start, but none in the past and none on the machine while it is down. Jobs that are to
stand still hold their planned times, or what comes next after them, and the others are planned around them.

A local repair shifts the operations that must wait to the right. Then it swaps neighbours on a machine, at first those
that the breakdown hit, then in rings around them: an operation's neighbours in its job and on its machine are one ring
further out. A swap stays if the schedule ends sooner, or as soon with fewer operations off their planned time. Bounds
on both make the same input always give the same repair.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

from .shop import Downtime, Repair, Shop

Block = tuple[int, int]  # a stretch of time on one machine: from, until
RULES: dict[str, Callable[[Shop, int], int]] = {  # of an operation; the smallest comes first
    "most work remaining": lambda shop, op: -sum(duration for _, duration in shop.jobs[shop.job[op]][shop.index[op] :]),
    "shortest first": lambda shop, op: shop.duration[op],
    "longest first": lambda shop, op: -shop.duration[op],
    "first come": lambda shop, op: shop.index[op],
}


@dataclass
class Situation:
    """What is to be decided anew after a breakdown; starts and ends are by an operation's number.

    What has begun when the machine stops is `past`; that and the jobs that are to stand `still` are `fixed`, the others
    `free`. `blocks` are the times in which a machine is not to be had, `hit` are the operations that were planned for
    the time in which it is down.
    """

    shop: Shop
    planned: Sequence[int]
    down: Downtime
    still: Collection[int] = ()

    def __post_init__(self) -> None:
        shop, planned, down = self.shop, self.planned, self.down
        self.past, self.hit = dict[int, Block](), list[int]()
        for op, start in enumerate(planned):
            end, late = start + shop.duration[op], down.until - down.since
            on_it = shop.machine[op] == down.machine and end > down.since
            if start < down.since:
                self.past[op] = (start, end + late if on_it else end)
            if on_it and start < down.until:
                self.hit.append(op)
        self.blocks: list[list[Block]] = [[] for _ in range(shop.machines)]
        self.blocks[down.machine].append((down.since, down.until))
        for op, (start, end) in self.past.items():
            self._block(op, start, end)
        self.fixed = dict(self.past)
        ends = {shop.job[op]: end for op, (_, end) in sorted(self.past.items())}
        for op in sorted(shop.operations, key=lambda op: (planned[op], op)):
            if shop.job[op] not in self.still or op in self.past:
                continue
            start = self.fit(op, max(planned[op], ends.get(shop.job[op], 0)))
            self.fixed[op] = (start, start + shop.duration[op])
            ends[shop.job[op]] = start + shop.duration[op]
            self._block(op, *self.fixed[op])
        self.free = [op for op in shop.operations if op not in self.fixed]

    def _block(self, op: int, start: int, end: int) -> None:
        """Take a machine from start to end; its blocks stay in order, and those that touch or overlap become one."""
        if not self.shop.duration[op] or end <= self.down.since:
            return
        merged: list[Block] = []
        for block in sorted([*self.blocks[self.shop.machine[op]], (start, end)]):
            if merged and block[0] <= merged[-1][1]:
                block = (merged[-1][0], max(block[1], merged.pop()[1]))
            merged.append(block)
        self.blocks[self.shop.machine[op]] = merged

    def fit(self, op: int, earliest: int) -> int:
        """Return the first moment from `earliest` on at which an operation fits between what is blocked."""
        duration = self.shop.duration[op]
        for start, end in self.blocks[self.shop.machine[op]] if duration else ():
            if earliest + duration <= start:
                break
            earliest = max(earliest, end)
        return earliest

    def end(self, op: int, start: int) -> int:
        """Return when an operation that starts at `start` is done."""
        return self.past[op][1] if op in self.past else start + self.shop.duration[op]

    def makespan(self, starts: Sequence[int]) -> int:
        return max(self.end(op, start) for op, start in enumerate(starts))


def sequence_jobs(shop: Shop, rule: str) -> list[list[int]]:
    """By machine, the jobs in the order in which it takes them. A job that comes twice is there twice."""
    free, orders = [0] * shop.machines, [list[int]() for _ in range(shop.machines)]
    ready = {op: 0 for op in shop.operations if not shop.index[op]}
    while ready:
        earliest = {op: max(at, free[shop.machine[op]]) if shop.duration[op] else at for op, at in ready.items()}
        chosen = min(earliest, key=lambda op: (earliest[op] + shop.duration[op], op))
        done, machine = earliest[chosen] + shop.duration[chosen], shop.machine[chosen]
        if shop.duration[chosen]:
            rivals = [
                op for op, at in earliest.items() if at < done and shop.machine[op] == machine and shop.duration[op]
            ]
            chosen = min(rivals, key=lambda op: (RULES[rule](shop, op), op))
            orders[machine].append(shop.job[chosen])
            done = free[machine] = earliest[chosen] + shop.duration[chosen]
        del ready[chosen]
        if (after := shop.after(chosen)) >= 0:
            ready[after] = done
    return orders


def time_jobs(shop: Shop, orders: Sequence[Sequence[int]]) -> list[int] | None:
    """When each operation starts, as early as the orders of jobs let it; None where they wait in a circle."""
    visits = defaultdict[tuple[int, int], list[int]](list)
    for op in reversed(shop.operations):
        if shop.duration[op]:
            visits[shop.machine[op], shop.job[op]].append(op)
    operations = [[visits[machine, job].pop() for job in jobs] for machine, jobs in enumerate(orders)]
    nothing = Situation(shop, [0] * len(shop.operations), Downtime(machine=0, since=0, until=0))
    return _time(nothing, operations, frozenset())


def shift_right(situation: Situation) -> list[int]:
    """Return the starts of a repair that keeps every machine's order: whatever must wait waits."""
    starts = _time(situation, situation.shop.in_order(situation.free, situation.planned), frozenset())
    if starts is None:
        raise AssertionError("the orders of a schedule wait in a circle")
    return starts


def repair_locally(now: Situation, *, radius: int, limit: int) -> tuple[list[int], int, int]:
    """(starts, swaps in them, swaps that were tried for them), up to `radius` rings from what was hit."""
    best, swaps, tried, near = shift_right(now), 0, 0, set(now.hit)
    orders = now.shop.in_order(now.free, now.planned)
    loose: frozenset[int] = frozenset()  # the operations that changed places
    neighbours = [(op, now.shop.after(op)) for op in now.shop.operations if now.shop.after(op) >= 0]
    neighbours += [pair for order in now.shop.in_order(now.shop.operations, now.planned) for pair in pairwise(order)]
    for _ in range(radius + 1):
        before = -1
        while swaps > before and tried < limit:
            before = swaps
            for order in orders:
                for at in range(len(order) - 1):
                    pair = order[at : at + 2]
                    off = any(best[op] != now.planned[op] for op in pair)
                    if not off or not near.issuperset(pair) or tried >= limit:
                        continue
                    tried += 1
                    order[at : at + 2] = reversed(pair)
                    starts = _time(now, orders, loose.union(pair))
                    if starts is not None and rate_schedule(now, starts) < rate_schedule(now, best):
                        best, loose, swaps = starts, loose.union(pair), swaps + 1
                    else:
                        order[at : at + 2] = pair
        near |= {op for pair in neighbours if not near.isdisjoint(pair) for op in pair}
    return best, swaps, tried


def rate_schedule(situation: Situation, starts: Sequence[int]) -> tuple[int, int, int]:
    """(end of the last operation, operations off their planned time, by how much in all): the smaller the better."""
    off = [abs(start - planned) for start, planned in zip(starts, situation.planned, strict=True)]
    return situation.makespan(starts), sum(map(bool, off)), sum(off)


def make_repair(now: Situation, starts: Sequence[int], *, seconds: float, how: str) -> Repair:
    """Make a schedule after the breakdown, with what it moved."""
    ends = [now.end(op, start) for op, start in enumerate(starts)]
    elsewhere = resequenced(now.shop, now.planned, starts)
    marks = [(start != now.planned[op]) + (op in elsewhere) for op, start in enumerate(starts)]
    return Repair(
        machines=now.shop.machines,
        operations=list(zip(now.shop.job, now.shop.index, now.shop.machine, starts, ends, marks, strict=True)),
        downtimes=[(now.down.machine, now.down.since, now.down.until)],
        now=now.down.since,
        makespan=max(ends),
        retimed=sum(map(bool, marks)),
        resequenced=len(elsewhere),
        ms=round(seconds * 1000),
        how=how,
    )


def resequenced(shop: Shop, planned: Sequence[int], starts: Sequence[int]) -> set[int]:
    """Return the operations that have to be moved to get from the old orders to the new ones.

    Each is taken out and put elsewhere. On each machine those that kept their time also kept their order, and stay
    where they are. Of the others as few as possible are taken out, which leaves the longest run that kept its order.
    """
    moved: set[int] = set()
    before, after = (shop.in_order(shop.operations, times) for times in (planned, starts))
    for old, new in zip(before, after, strict=True):
        runs: dict[int, tuple[int, int, list[int]]] = {}  # (that kept their time, length, run) of the best to each
        for op in new:
            earlier = [runs[other] for other in old[: old.index(op)] if other in runs]
            still, length, run = max(earlier, key=lambda run: run[:2], default=(0, 0, []))
            runs[op] = (still + (planned[op] == starts[op]), length + 1, [*run, op])
        moved |= set(new).difference(max(runs.values(), default=(0, 0, []))[2])
    return moved


def _time(situation: Situation, orders: list[list[int]], loose: frozenset[int]) -> list[int] | None:
    """The start of each operation under these orders of the open ones; None where they wait in a circle.

    None starts before it was planned to, but those that are `loose`: they may as soon as the machine stopped.
    """
    shop, fixed = situation.shop, situation.fixed
    starts = [fixed[op][0] if op in fixed else -1 for op in shop.operations]
    previous = {op: at for order in orders for at, op in pairwise(order)}
    following = {at: op for op, at in previous.items()}
    waits = {op: (op in previous) + (shop.before(op) >= 0 and shop.before(op) not in fixed) for op in situation.free}
    ready = [op for op in situation.free if not waits[op]]
    while ready:
        op = ready.pop()
        earliest = situation.down.since if op in loose else situation.planned[op]
        if (before := shop.before(op)) >= 0:
            earliest = max(earliest, situation.end(before, starts[before]))
        if op in previous:
            earliest = max(earliest, starts[previous[op]] + shop.duration[previous[op]])
        starts[op] = situation.fit(op, earliest)
        for after in (shop.after(op), following.get(op, -1)):
            if after >= 0:
                waits[after] -= 1
                if not waits[after]:
                    ready.append(after)
    return None if any(waits.values()) else starts
