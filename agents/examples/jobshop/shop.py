"""A job shop: the file that describes it, and its operations as the planners number them.

The file has a line "jobs machines", then one line a job with a pair "machine duration" for each of its operations, in
the order in which they are done. All count from 0. Blank lines, and comments after #, are skipped. Nothing is guessed:
all faults are reported at once, each with its line.

Every operation has one number, and a job's operations follow each other. An operation that takes no time does not
occupy its machine: it only waits for the one before it in its job.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

from pydantic import Field, field_validator

from agents.examples.nouns import Noun

MOST_TEXT = 400_000  # characters of a file
MOST_OPERATIONS = 2_500
LONGEST = 1_000_000  # of one operation, in whatever unit the file is in

Job = list[tuple[int, int]]  # (machine, duration) of each operation, in order
Block = tuple[int, int]  # a stretch of time on one machine: from, until


class ShopRefused(ValueError):
    """The text is no job shop; `faults` says of each line what is wrong with it."""

    def __init__(self, faults: Sequence[str]) -> None:
        self.faults = faults
        super().__init__("; ".join(faults))


class Source(Noun):
    """A shop's file: its name, and its text."""

    name: str = Field(min_length=1, max_length=100)
    text: str = Field(max_length=MOST_TEXT)

    @field_validator("text")
    @classmethod
    def can_be_read(cls, text: str) -> str:
        read_shop(text)
        return text

    @classmethod
    def read(cls, file: Path) -> Source:
        """Read a file. Raises OSError and ValidationError."""
        with file.open(encoding="utf-8", errors="replace") as source:
            return cls(name=file.stem[:100], text=source.read(MOST_TEXT + 1))


class Shop(Noun):
    """A shop as it was read; `machine`, `duration`, `job` and `index` (within the job) are by an operation's number."""

    machines: int
    jobs: list[Job]

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

    @property
    def operations(self) -> range:
        return range(len(self.job))

    def before(self, op: int) -> int:
        """Return the operation before `op` in its job, -1 if it is the first."""
        return op - 1 if self.index[op] else -1

    def after(self, op: int) -> int:
        """Return the operation after `op` in its job, -1 if it is the last."""
        return op + 1 if op + 1 < len(self.index) and self.index[op + 1] else -1

    def in_order(self, operations: Iterable[int], starts: Sequence[int]) -> list[list[int]]:
        """By machine, those of the operations that take time, as they start."""
        orders: list[list[int]] = [[] for _ in range(self.machines)]
        for op in sorted(operations, key=lambda op: (starts[op], op)):
            if self.duration[op]:
                orders[self.machine[op]].append(op)
        return orders


def read_shop(text: str) -> Shop:
    """Return the shop of a text. Raises ShopRefused."""
    lines = [(number, line.partition("#")[0].split()) for number, line in enumerate(text.splitlines(), 1)]
    lines = [(number, words) for number, words in lines if words]
    faults = [
        f"line {number}: “{word[:40]}” is no whole number of 0 or more"
        for number, words in lines
        for word in words
        if not (word.isascii() and word.isdecimal() and len(word) <= 12)
    ]
    if not lines:
        faults = ["line 1: there is nothing in it but comments and blank lines"]
    elif not faults and len(lines[0][1]) != 2:
        faults = [f"line {lines[0][0]}: it should hold two numbers, of jobs and of machines"]
    if faults:
        raise ShopRefused(faults)
    (header, size), *rest = lines
    count, machines = map(int, size)
    if not 0 < count * machines <= MOST_OPERATIONS:
        raise ShopRefused([f"line {header}: a shop has 1 to {MOST_OPERATIONS:,} operations"])
    if len(rest) != count:
        faults.append(f"line {header}: it says {count} jobs, and there are {len(rest)}")
    jobs = []
    for line, words in rest:
        if len(words) != 2 * machines:
            faults.append(f"line {line}: it should hold {machines} pairs of a machine and a duration")
        job = list(zip(map(int, words[::2]), map(int, words[1::2]), strict=False))
        wrong = [at for at, _ in job if at >= machines]
        faults += [f"line {line}: there is no machine {at}; they count 0 to {machines - 1}" for at in wrong]
        faults += [f"line {line}: {duration} is longer than {LONGEST:,}" for _, duration in job if duration > LONGEST]
        jobs.append(job)
    if faults:
        raise ShopRefused(faults)
    return Shop(machines=machines, jobs=jobs)
