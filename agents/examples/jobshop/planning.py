"""Plans the first schedule in two steps: a dispatching rule orders the jobs on each machine, then times are computed.

The orders are those of an active schedule (B. Giffler and G. L. Thompson, Operations Research 8, 1960): of the
operations that could run next, the one that could end first determines the machine, and the rule chooses among those
that conflict with it there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from .shop import Plant

Rule = Callable[[Plant, int], tuple[int, int]]  # of an operation's number; the smallest comes first

RULES: dict[str, Rule] = {
    "most work remaining": lambda plant, op: (-sum(plant.duration[op : plant.first[plant.job[op] + 1]]), op),
    "shortest first": lambda plant, op: (plant.duration[op], op),
    "longest first": lambda plant, op: (-plant.duration[op], op),
    "first come": lambda plant, op: (plant.index[op], op),
}


def rule_after(rule: str, refused: int) -> str:
    """Return the rule to try after schedules by `rule` and the rules after it were refused `refused` times."""
    names = list(RULES)
    return names[(names.index(rule) + refused) % len(names)]


class OrdersRefused(ValueError):
    """The orders cannot be timed; says why."""


def sequenced(plant: Plant, rule: str) -> list[list[int]]:
    """By machine, the jobs in the order in which it takes them. A job that comes twice is there twice."""
    rank = RULES[rule]
    free = [0] * plant.machines
    ready = [(first, 0) for first, end in pairwise(plant.first) if first < end]
    orders: list[list[int]] = [[] for _ in range(plant.machines)]
    while ready:
        earliest = {op: max(at, free[plant.machine[op]]) if plant.duration[op] else at for op, at in ready}
        soonest = min(earliest, key=lambda op: (earliest[op] + plant.duration[op], op))
        chosen = soonest
        if plant.duration[soonest]:
            done = earliest[soonest] + plant.duration[soonest]
            rivals = [op for op in earliest if plant.machine[op] == plant.machine[soonest] and plant.duration[op]]
            chosen = min((op for op in rivals if earliest[op] < done), key=lambda op: rank(plant, op))
            orders[plant.machine[chosen]].append(plant.job[chosen])
            free[plant.machine[chosen]] = earliest[chosen] + plant.duration[chosen]
        ready = [(op, at) for op, at in ready if op != chosen]
        if (following := plant.after(chosen)) >= 0:
            ready.append((following, earliest[chosen] + plant.duration[chosen]))
    return orders


def timed(plant: Plant, orders: Sequence[Sequence[int]]) -> list[int]:
    """When each operation starts, as early as the orders let it. Raises OrdersRefused."""
    queues = [_operations(plant, machine, jobs) for machine, jobs in enumerate(orders)]
    starts = [-1] * len(plant)
    free, turn = [0] * plant.machines, [0] * plant.machines
    upcoming, done = list(plant.first[:-1]), [0] * len(plant.jobs)
    moved = True
    while moved:
        moved = False
        for job, end in enumerate(plant.first[1:]):
            while (op := upcoming[job]) < end:
                machine, duration = plant.machine[op], plant.duration[op]
                if duration and (turn[machine] >= len(queues[machine]) or queues[machine][turn[machine]] != op):
                    break
                starts[op] = max(done[job], free[machine]) if duration else done[job]
                done[job] = starts[op] + duration
                if duration:
                    free[machine], turn[machine] = done[job], turn[machine] + 1
                upcoming[job], moved = op + 1, True
    if -1 in starts:
        raise OrdersRefused("The machines' orders wait for each other in a circle.")
    return starts


def _operations(plant: Plant, machine: int, jobs: Sequence[int]) -> list[int]:
    """Return the operations behind an order of jobs. Raises OrdersRefused.

    A job's visits to the machine come in the job's own order.
    """
    visits = [
        [op for op in range(first, end) if plant.machine[op] == machine and plant.duration[op]]
        for first, end in pairwise(plant.first)
    ]
    found, taken = [], [0] * len(visits)
    for job in jobs:
        if not 0 <= job < len(visits) or taken[job] >= len(visits[job]):
            raise OrdersRefused(f"Machine {machine} has job {job} in its order once too often.")
        found.append(visits[job][taken[job]])
        taken[job] += 1
    if sum(taken) < sum(map(len, visits)):
        raise OrdersRefused(f"The order of machine {machine} leaves operations out.")
    return found
