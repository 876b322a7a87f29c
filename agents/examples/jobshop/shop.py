"""A job shop in the planners' form: every operation has one number, and a job's operations follow each other.

An operation that takes no time does not occupy its machine: it only waits for the one before it in its job.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from .reading import Job

Block = tuple[int, int]  # a stretch of time on one machine: from, until


@dataclass(frozen=True)
class Plant:
    """The operations of a shop: `machine`, `duration`, `job` and `index` by an operation's number."""

    machines: int
    jobs: Sequence[Job]

    @cached_property
    def job(self) -> list[int]:
        return [job for job, operations in enumerate(self.jobs) for _ in operations]

    @cached_property
    def index(self) -> list[int]:
        return [index for operations in self.jobs for index, _ in enumerate(operations)]

    @cached_property
    def machine(self) -> list[int]:
        return [machine for operations in self.jobs for machine, _ in operations]

    @cached_property
    def duration(self) -> list[int]:
        return [duration for operations in self.jobs for _, duration in operations]

    @cached_property
    def first(self) -> list[int]:
        """Return the number of each job's first operation, and one more for where the next would be."""
        return [0, *accumulate(len(operations) for operations in self.jobs)]

    def __len__(self) -> int:
        return len(self.job)

    def before(self, op: int) -> int:
        """Return the operation before `op` in its job, -1 if it is the first."""
        return op - 1 if self.index[op] else -1

    def after(self, op: int) -> int:
        """Return the operation after `op` in its job, -1 if it is the last."""
        return op + 1 if op + 1 < self.first[self.job[op] + 1] else -1

    def busy(self) -> list[int]:
        """By machine, how long it has to work."""
        return [sum(d for job in self.jobs for at, d in job if at == machine) for machine in range(self.machines)]

    def in_order(self, ops: Iterable[int], starts: Sequence[int]) -> list[list[int]]:
        """By machine, those of `ops` that take time, as they start."""
        orders: list[list[int]] = [[] for _ in range(self.machines)]
        for op in sorted(ops, key=lambda op: (starts[op], op)):
            if self.duration[op]:
                orders[self.machine[op]].append(op)
        return orders


def merged(blocks: Iterable[Block]) -> list[Block]:
    """Return the same stretches of time in order, those that touch or overlap as one."""
    found: list[Block] = []
    for start, end in sorted(blocks):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def fitted(earliest: int, duration: int, blocks: Sequence[Block]) -> int:
    """Return the first moment from `earliest` on at which `duration` fits between merged blocks."""
    for start, end in blocks:
        if earliest + duration <= start:
            break
        earliest = max(earliest, end)
    return earliest
