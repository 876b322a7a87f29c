"""Reads the data of a Gantt chart from the saved state. Pure.

The data at a chart's pointer is an object:

    machines    how many there are, or a list of their names
    operations  rows [job, index, machine, start, end, moved]: jobs, operations within a job and machines count
                from 0; `moved` is 0 for unchanged, 1 for another time, 2 for another place
                in its machine's order as well
    downtimes   rows [machine, from, until]; may be left out
    now         a moment: operations that begin before it are past; may be left out

Other names are ignored. Data of another shape give a sentence, which is shown instead of the drawing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from approvals.presentation.text import untrusted

Number = int | float

MOST_OPERATIONS, MOST_MACHINES, LATEST = 3_000, 150, 10**12
NAME = 14  # characters of a machine's name
CHANGES = {0: "", 1: "another time", 2: "another order"}


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One operation, drawn as a bar."""

    job: int
    index: int
    machine: int
    start: Number
    end: Number
    moved: Literal[0, 1, 2]

    @property
    def change(self) -> str:
        return CHANGES[self.moved]


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """A schedule: names of lanes, operations, and standstills as (machine, from, until)."""

    names: Sequence[str]
    operations: Sequence[Operation]
    downtimes: Sequence[tuple[int, Number, Number]]
    now: Number | None

    @property
    def end(self) -> Number:
        return max((operation.end for operation in self.operations), default=0)

    @property
    def moved(self) -> int:
        return sum(1 for operation in self.operations if operation.moved)

    @property
    def reordered(self) -> int:
        return sum(1 for operation in self.operations if operation.moved == 2)


@dataclass
class _Malformed(Exception):
    said: str


def read(data: Any) -> Schedule | str:
    """Read the data as a schedule; else return a sentence that says what is wrong."""
    try:
        return _read(data)
    except _Malformed as wrong:
        return f"This chart cannot be drawn: {wrong.said}. What is there stands in the saved state below."


def _read(data: Any) -> Schedule:
    if not isinstance(data, dict):
        raise _Malformed("its data is no object")
    names = _names(data.get("machines"))
    rows = _rows(data.get("operations"), "operations", 6)
    operations = [_operation(row, number, len(names)) for number, row in enumerate(rows, 1)]
    downtimes = []
    for number, (machine, start, end) in enumerate(_rows(data.get("downtimes", []), "downtimes", 3), 1):
        where = f"row {number} of its downtimes"
        downtimes.append((_index(machine, len(names), where), *_stretch(start, end, where)))
    now = data.get("now")
    if now is not None and not _is_moment(now):
        raise _Malformed("its “now” is no moment")
    return Schedule(names=names, operations=operations, downtimes=downtimes, now=now)


def _names(machines: Any) -> list[str]:
    if isinstance(machines, list) and all(isinstance(name, str) for name in machines):
        found = [untrusted.plain(name, limit=NAME) for name in machines[: MOST_MACHINES + 1]]
    elif isinstance(machines, int) and not isinstance(machines, bool) and machines >= 0:
        found = [str(number) for number in range(min(machines, MOST_MACHINES + 1))]
    else:
        raise _Malformed("it does not say how many machines there are")
    if not 0 < len(found) <= MOST_MACHINES:
        raise _Malformed(f"it has to have 1 to {MOST_MACHINES} machines")
    return found


def _rows(value: Any, name: str, width: int) -> list[list[Any]]:
    if not isinstance(value, list):
        raise _Malformed(f"its {name} are no list")
    if len(value) > MOST_OPERATIONS:
        words = f"its {len(value):,} {name} are more than the {MOST_OPERATIONS:,} that are drawn"
        raise _Malformed(words)
    for number, row in enumerate(value, 1):
        if not isinstance(row, list) or len(row) != width:
            words = f"row {number} of its {name} does not hold {width} numbers"
            raise _Malformed(words)
    return value


def _operation(row: Sequence[Any], number: int, machines: int) -> Operation:
    where = f"row {number} of its operations"
    job, index, machine, start, end, moved = row
    if isinstance(moved, bool) or not isinstance(moved, int) or moved not in CHANGES:
        raise _Malformed(f"{where} has a mark that is none of 0, 1 and 2")
    start, end = _stretch(start, end, where)
    return Operation(
        job=_index(job, LATEST, where),
        index=_index(index, LATEST, where),
        machine=_index(machine, machines, where),
        start=start,
        end=end,
        moved=int(moved),  # type: ignore[arg-type]
    )


def _index(value: Any, limit: int, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < limit:
        raise _Malformed(f"{where} has a job, an operation or a machine that there is not")
    return value


def _stretch(start: Any, end: Any, where: str) -> tuple[Number, Number]:
    if not _is_moment(start) or not _is_moment(end) or end < start:
        raise _Malformed(f"{where} has no start and end in this order")
    return start, end


def _is_moment(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= LATEST


def said(value: Number) -> str:
    """Write a number: `1,634`, `12.5`."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"
