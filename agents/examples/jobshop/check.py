"""Validates a schedule against the rules of the shop, from the shop's own jobs and nothing else.

It shares no code with the planners and repairs, and does not know how a schedule was made: it gets the rows that would
go to the shop floor.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

Row = Sequence[int]  # job, index, machine, start, end, and whatever comes after
Stop = tuple[int, int, int]  # machine, from, until

MOST = 20  # faults that are told; more would not help anybody


def faults(
    jobs: Sequence[Sequence[tuple[int, int]]],
    rows: Sequence[Row],
    *,
    stop: Stop | None = None,
    before: Sequence[Row] = (),
) -> list[str]:
    """Say in sentences what is wrong with a schedule; return an empty list if it can be worked.

    `stop` is a machine that stands still. `before` is the schedule that was being worked when it stopped; what had
    begun in it may not change.
    """
    found = _completeness(jobs, rows)
    if found:  # without every operation there exactly once the rest cannot be asked
        return found[:MOST]
    found = [*_lengths(jobs, rows, stop), *_precedence(rows), *_capacity(rows)]
    if stop:
        found += [*_standstill(rows, stop), *_history(rows, stop, before)]
    return found[:MOST]


def _name(row: Row) -> str:
    return f"operation {row[1]} of job {row[0]}"


def _completeness(jobs: Sequence[Sequence[tuple[int, int]]], rows: Sequence[Row]) -> list[str]:
    found = []
    there: dict[tuple[int, int], int] = {}
    for row in rows:
        there[row[0], row[1]] = there.get((row[0], row[1]), 0) + 1
    for job, operations in enumerate(jobs):
        for index in range(len(operations)):
            times = there.pop((job, index), 0)
            if times != 1:
                found.append(f"Operation {index} of job {job} is there {times} times.")
    return found + [f"There is no operation {index} of job {job}." for job, index in there]


def _lengths(jobs: Sequence[Sequence[tuple[int, int]]], rows: Sequence[Row], stop: Stop | None) -> list[str]:
    """Each on its machine and as long as it takes, with the standstill on top where it was under way on the machine."""
    found = []
    for row in rows:
        machine, duration = jobs[row[0]][row[1]]
        start, end = row[3], row[4]
        if row[2] != machine:
            found.append(f"The {_name(row)} is on machine {row[2]}; it needs machine {machine}.")
        if start < 0:
            found.append(f"The {_name(row)} starts before the beginning, at {start}.")
        if stop and machine == stop[0] and start < stop[1] < start + duration:
            duration += stop[2] - stop[1]
        if end - start != duration:
            found.append(f"The {_name(row)} takes {end - start}; it needs {duration}.")
    return found


def _precedence(rows: Sequence[Row]) -> list[str]:
    found = []
    for one, other in pairwise(sorted(rows, key=lambda row: (row[0], row[1]))):
        if one[0] == other[0] and other[3] < one[4]:
            found.append(f"The {_name(other)} starts at {other[3]}, before the one before it ends at {one[4]}.")
    return found


def _capacity(rows: Sequence[Row]) -> list[str]:
    found = []
    working = [row for row in rows if row[3] != row[4]]
    for one, other in pairwise(sorted(working, key=lambda row: (row[2], row[3], row[4]))):
        if one[2] == other[2] and other[3] < one[4]:
            found.append(f"Machine {one[2]} has the {_name(one)} and the {_name(other)} at {other[3]}.")
    return found


def _standstill(rows: Sequence[Row], stop: Stop) -> list[str]:
    machine, since, until = stop
    return [
        f"The {_name(row)} starts at {row[3]} on machine {machine}, which stands still until {until}."
        for row in rows
        if row[2] == machine and row[3] != row[4] and since <= row[3] < until
    ]


def _history(rows: Sequence[Row], stop: Stop, before: Sequence[Row]) -> list[str]:
    """Check that what had begun keeps its start, and that nothing begins in what is already past."""
    began = {(row[0], row[1]): row[3] for row in before if row[3] < stop[1]}
    found = []
    for row in rows:
        was = began.get((row[0], row[1]))
        if was is not None and row[3] != was:
            found.append(f"The {_name(row)} had begun at {was} and is said to begin at {row[3]}.")
        elif was is None and row[3] < stop[1]:
            found.append(f"The {_name(row)} would begin at {row[3]}, which was over at {stop[1]}.")
    return found
