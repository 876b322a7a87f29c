"""A job shop and its schedules: the file that describes it, what is saved of it, and the shop floor's board.

The file has a line "jobs machines", then one line a job with a pair "machine duration" for each of its operations, in
the order in which they are done. All count from 0. Blank lines, and comments after #, are skipped. Nothing is guessed:
all faults are reported at once, each with its line.

Every operation has one number, and a job's operations follow each other. An operation that takes no time does not
occupy its machine: it only waits for the one before it in its job.

The board is a folder with one file for each schedule that is published, named by its key. A file is there whole or not
at all, so that a reader of the board never sees half a schedule; publishing under a key again writes the same.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

from django.conf import settings
from pydantic import Field, ValidationInfo, field_validator

from agents import EffectFailed
from agents.examples.nouns import Noun

MOST_TEXT = 400_000  # characters of a file
MOST_OPERATIONS = 2_500
LONGEST = 1_000_000  # of one operation, in whatever unit the file is in
LATEST = 10**9  # of any moment

Job = list[tuple[int, int]]  # (machine, duration) of each operation, in order
Row = tuple[int, int, int, int, int, int]  # job, index, machine, start, end, moved: see Schedule


class Source(Noun):
    """A shop's file: its name, and its text."""

    name: str = Field(min_length=1, max_length=100)
    text: str = Field(max_length=MOST_TEXT)

    @field_validator("text")
    @classmethod
    def can_be_read(cls, text: str) -> str:
        read_shop(text)
        return text


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

    # The operations before and after one in its job, or -1.
    def before(self, op: int) -> int:
        return op - 1 if self.index[op] else -1

    def after(self, op: int) -> int:
        return op + 1 if op + 1 < len(self.index) and self.index[op + 1] else -1

    def in_order(self, operations: Iterable[int], starts: Sequence[int]) -> list[list[int]]:
        """By machine, those of the operations that take time, as they start."""
        orders: list[list[int]] = [[] for _ in range(self.machines)]
        for op in sorted(operations, key=lambda op: (starts[op], op)):
            if self.duration[op]:
                orders[self.machine[op]].append(op)
        return orders


class Breakdown(Noun):
    """A machine stops at `since` and is back at `until`. What is left out is derived from the first schedule."""

    machine: int | None = Field(default=None, ge=0)
    since: int | None = Field(default=None, ge=0, le=LATEST)
    until: int | None = Field(default=None, ge=1, le=LATEST)

    @field_validator("until")
    @classmethod
    def ends_after_it_begins(cls, until: int | None, info: ValidationInfo) -> int | None:
        since = info.data.get("since")
        if until is not None and since is not None and until <= since:
            raise ValueError(f"it has to be later than {since}, when the machine stops")
        return until


class Downtime(Noun):
    """A breakdown with nothing left open."""

    machine: int
    since: int
    until: int


class Schedule(Noun):
    """A schedule in the form in which a gate draws it (approvals.presentation.drawing.gantt).

    `operations` has a row of six for each: job, index within the job, machine, start, end, and 0 where it starts as
    planned, 1 where it starts at another time, 2 where it has also come to another place in its machine's order.
    """

    machines: int
    operations: list[Row]
    downtimes: list[tuple[int, int, int]] = Field(default_factory=list)  # machine, from, until
    now: int | None = None  # what begins before it is past
    makespan: int


class Repair(Schedule):
    """A schedule after a breakdown, and what it took."""

    retimed: int  # operations that start at another time than planned
    resequenced: int  # of them, those that had to change places
    ms: int
    how: str  # one sentence


class Published(Noun):
    """A schedule on the shop floor's board: the key that it was published under, and its file's name."""

    key: str = Field(pattern=r"^[0-9a-f]{64}$")
    file: str


def read_shop(text: str) -> Shop:
    """Return the shop of a text. Raises ValueError with all its faults."""
    lines = [(number, line.partition("#")[0].split()) for number, line in enumerate(text.splitlines(), 1)]
    lines = [(number, words) for number, words in lines if words]
    if not lines:
        raise ValueError("line 1: there is nothing in it but comments and blank lines")
    faults = [
        f"line {line}: “{word[:40]}” is no whole number of 0 or more"
        for line, words in lines
        for word in words
        if not (word.isascii() and word.isdecimal() and len(word) <= 12)
    ]
    if faults:
        raise ValueError("; ".join(faults))
    (header, size), *rest = [(line, [int(word) for word in words]) for line, words in lines]
    if len(size) != 2:
        raise ValueError(f"line {header}: it should hold two numbers, of jobs and of machines")
    count, machines = size
    if not 0 < count * machines <= MOST_OPERATIONS:
        raise ValueError(f"line {header}: a shop has 1 to {MOST_OPERATIONS:,} operations")
    if len(rest) != count:
        faults.append(f"line {header}: it says {count} jobs, and there are {len(rest)}")
    for line, numbers in rest:
        if len(numbers) != 2 * machines:
            faults.append(f"line {line}: it should hold {machines} pairs of a machine and a duration")
        wrong, long = [at for at in numbers[::2] if at >= machines], [time for time in numbers[1::2] if time > LONGEST]
        faults += [f"line {line}: there is no machine {at}, they count 0 to {machines - 1}" for at in wrong]
        faults += [f"line {line}: {time} is longer than {LONGEST:,}" for time in long]
    if faults:
        raise ValueError("; ".join(faults))
    return Shop(machines=machines, jobs=[list(zip(row[::2], row[1::2], strict=True)) for _, row in rest])


def make_schedule(shop: Shop, starts: Sequence[int]) -> Schedule:
    """Make a first schedule from the starts of the operations."""
    ends = [start + duration for start, duration in zip(starts, shop.duration, strict=True)]
    rows = list(zip(shop.job, shop.index, shop.machine, starts, ends, [0] * len(ends), strict=True))
    return Schedule(machines=shop.machines, operations=rows, makespan=max(ends))


def derive_downtime(breakdown: Breakdown, shop: Shop, plan: Schedule) -> Downtime:
    """Fill in what a breakdown leaves open: the busiest machine, at a quarter of the plan, for a tenth of it."""
    machine, since, until = breakdown.machine, breakdown.since, breakdown.until
    if machine is None:
        work = [sum(time for job in shop.jobs for at, time in job if at == number) for number in range(shop.machines)]
        machine = work.index(max(work))
    if since is None:
        since = min(plan.makespan // 4, LATEST if until is None else until - 1)
    return Downtime(machine=machine, since=since, until=until or since + max(plan.makespan // 10, 1))


def publish(name: str, schedule: Schedule, key: str) -> Published:
    """Put on the board what a foreman reads: for each machine, what it works on, from when until when."""
    work: dict[str, list[dict[str, int]]] = {f"machine {machine}": [] for machine in range(schedule.machines)}
    for job, index, machine, start, end, _ in sorted(schedule.operations, key=lambda row: (row[3], row[0], row[1])):
        work[f"machine {machine}"].append({"job": job, "operation": index, "from": start, "until": end})
    sheet = json.dumps({"shop": name, "key": key, "ends": schedule.makespan, "work": work}, indent=1)
    draft = find_sheet(key).with_suffix(f".{os.getpid()}")
    try:
        draft.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(sheet, encoding="utf-8")
        draft.replace(find_sheet(key))
    except OSError as error:
        raise EffectFailed(f"The board cannot be written to: {error}", retry=True) from error
    return Published(key=key, file=find_sheet(key).name)


def find_sheet(key: str) -> Path:
    """Return the file on the board of what is published under a key."""
    return Path(settings.HOME) / "shop-floor" / f"{key}.json"
