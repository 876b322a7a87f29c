"""A schedule as it is saved, drawn at a gate and published: its rows, what moved in it, and the shop floor's board.

The board is a folder with one file for each schedule that is published, named by its key. A file is there whole or not
at all, so that a reader of the board never sees half a schedule; publishing under a key again writes the same.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings
from pydantic import Field, ValidationInfo, field_validator

from agents import EffectFailed
from agents.examples.nouns import Noun

from .shop import Shop

if TYPE_CHECKING:
    from .repair import Situation

Row = tuple[int, int, int, int, int, int]  # job, index, machine, start, end, moved: see Schedule
LATEST = 10**9  # of any moment


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


def make_schedule(shop: Shop, starts: Sequence[int]) -> Schedule:
    """Make a first schedule from the starts of the operations."""
    ends = [start + duration for start, duration in zip(starts, shop.duration, strict=True)]
    return Schedule(machines=shop.machines, operations=_rows(shop, starts, ends), makespan=max(ends))


def make_repair(now: Situation, starts: Sequence[int], *, seconds: float, how: str) -> Repair:
    """Make a schedule after the breakdown, with what it moved."""
    ends = [now.end(op, start) for op, start in enumerate(starts)]
    later, elsewhere = retimed(now.planned, starts), resequenced(now.shop, now.planned, starts)
    return Repair(
        machines=now.shop.machines,
        operations=_rows(now.shop, starts, ends, [(op in later) + (op in elsewhere) for op in now.shop.operations]),
        downtimes=[(now.down.machine, now.down.since, now.down.until)],
        now=now.down.since,
        makespan=max(ends),
        retimed=len(later),
        resequenced=len(elsewhere),
        ms=round(seconds * 1000),
        how=how,
    )


def _rows(shop: Shop, starts: Sequence[int], ends: Sequence[int], moved: Sequence[int] = ()) -> list[Row]:
    return list(zip(shop.job, shop.index, shop.machine, starts, ends, moved or [0] * len(ends), strict=True))


def derive_downtime(breakdown: Breakdown, shop: Shop, plan: Schedule) -> Downtime:
    """Fill in what a breakdown leaves open: the busiest machine, at a quarter of the plan, for a tenth of it."""
    busy = [sum(d for job in shop.jobs for at, d in job if at == machine) for machine in range(shop.machines)]
    machine = busy.index(max(busy)) if breakdown.machine is None else breakdown.machine
    since, until = breakdown.since, breakdown.until
    if since is None:
        since = min(plan.makespan // 4, LATEST if until is None else until - 1)
    return Downtime(machine=machine, since=since, until=until or since + max(plan.makespan // 10, 1))


def retimed(planned: Sequence[int], starts: Sequence[int]) -> set[int]:
    """Return the operations that start at another time than planned."""
    return {op for op, (was, now) in enumerate(zip(planned, starts, strict=True)) if was != now}


def resequenced(shop: Shop, planned: Sequence[int], starts: Sequence[int]) -> set[int]:
    """Return the operations that have to be moved to get from the old orders to the new ones.

    Each is taken out and put elsewhere. On each machine those that kept their time also kept their order, and stay
    where they are. Of the others as few as possible are taken out, which leaves the longest run that kept its order.
    """
    moved: set[int] = set()
    for old, new in zip(*(shop.in_order(shop.operations, times) for times in (planned, starts)), strict=True):
        runs: dict[int, tuple[int, int, list[int]]] = {}  # (that kept their time, length, run) of the best to each
        for op in new:
            before = [runs[other] for other in old[: old.index(op)] if other in runs]
            still, length, run = max(before, key=lambda run: run[:2], default=(0, 0, []))
            runs[op] = (still + (planned[op] == starts[op]), length + 1, [*run, op])
        moved |= set(new).difference(max(runs.values(), default=(0, 0, []))[2])
    return moved


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
