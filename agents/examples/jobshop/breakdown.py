"""Computes the rescheduling problem after a breakdown: the fixed operations, and the earliest starts of the others.

At `since` a machine stops, until `until`. Operations that have begun by then keep their start: the one that was under
way on the machine goes on when it is back, and so ends that much later. All others may get a new start, but not before
`since` and never on a machine that is down. Jobs to be kept hold their planned times, each operation as soon after them
as the breakdown allows; the others are planned around them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

from .shop import Block, Plant, fitted, merged


@dataclass(frozen=True)
class Down:
    """A machine that stands still from `since` until `until`."""

    machine: int
    since: int
    until: int


@dataclass(frozen=True)
class Situation:
    """A plant, the start of each operation as planned, and what happened. `kept`: jobs that are not to move."""

    plant: Plant
    planned: Sequence[int]
    down: Down
    kept: Collection[int] = ()

    @cached_property
    def past(self) -> dict[int, Block]:
        """What has begun when the machine stops: (start, end) by operation."""
        down, found = self.down, {}
        for op, start in enumerate(self.planned):
            if start < down.since:
                end = start + self.plant.duration[op]
                cut = self.plant.machine[op] == down.machine and end > down.since
                found[op] = (start, end + down.until - down.since if cut else end)
        return found

    @cached_property
    def fixed(self) -> dict[int, Block]:
        """What has begun, and the operations of the jobs that are kept: (start, end) by operation."""
        found = dict(self.past)
        blocks = self._blocks(found)
        ends = {self.plant.job[op]: end for op, (_, end) in sorted(found.items())}
        wanted = [op for op in range(len(self.plant)) if self.plant.job[op] in self.kept and op not in found]
        for op in sorted(wanted, key=lambda op: (self.planned[op], op)):
            job, machine, duration = self.plant.job[op], self.plant.machine[op], self.plant.duration[op]
            start = max(self.planned[op], ends.get(job, 0))
            if duration:
                start = fitted(start, duration, blocks[machine])
                blocks[machine] = merged([*blocks[machine], (start, start + duration)])
            found[op] = (start, start + duration)
            ends[job] = start + duration
        return found

    @cached_property
    def blocks(self) -> list[list[Block]]:
        """By machine, when it is not to be had: merged, without what is over when the machine stops."""
        return self._blocks(self.fixed)

    @cached_property
    def free(self) -> list[int]:
        """The operations whose times are open."""
        return [op for op in range(len(self.plant)) if op not in self.fixed]

    @cached_property
    def orders(self) -> list[list[int]]:
        """By machine, its open operations as they were planned."""
        return self.plant.in_order(self.free, self.planned)

    @cached_property
    def hit(self) -> list[int]:
        """The operations that were planned for the time in which the machine is down."""
        down, plant = self.down, self.plant
        return [
            op
            for op, start in enumerate(self.planned)
            if plant.machine[op] == down.machine and start < down.until and start + plant.duration[op] > down.since
        ]

    def end(self, op: int, start: int) -> int:
        """When an operation that starts at `start` is done."""
        return self.past[op][1] if op in self.past else start + self.plant.duration[op]

    def makespan(self, starts: Sequence[int]) -> int:
        """When the last operation is done."""
        return max((self.end(op, start) for op, start in enumerate(starts)), default=0)

    def _blocks(self, fixed: dict[int, Block]) -> list[list[Block]]:
        blocks: list[list[Block]] = [[] for _ in range(self.plant.machines)]
        blocks[self.down.machine].append((self.down.since, self.down.until))
        for op, (start, end) in fixed.items():
            if self.plant.duration[op] and end > self.down.since:
                blocks[self.plant.machine[op]].append((start, end))
        return [merged(each) for each in blocks]
