"""Validates a schedule against the rules of the shop, from the shop's own jobs and nothing else.

It shares no code with the planners and repairs, and does not know how a schedule was made: it gets the rows that would
go to the shop floor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from .shop import Downtime, Job

Row = Sequence[int]  # job, index, machine, start, end, and whatever comes after
NEVER = Downtime(machine=-1, since=0, until=0)
MOST = 20  # faults that are told; more would not help anybody


def find_faults(
    jobs: Sequence[Job], rows: Sequence[Row], *, stop: Downtime = NEVER, before: Sequence[Row] = ()
) -> list[str]:
    """Say in sentences what is wrong with a schedule; return an empty list if it can be worked.

    `stop` is a machine that stands still. `before` is the schedule that was being worked when it stopped; what had
    begun in it may not change.
    """
    # Without every operation there exactly once the rest cannot be asked.
    return list(islice(_missing(jobs, rows), MOST)) or list(islice(_wrong(jobs, rows, stop, before), MOST))


def _missing(jobs: Sequence[Job], rows: Sequence[Row]) -> Iterator[str]:
    times = Counter((row[0], row[1]) for row in rows)
    wanted = {(job, index) for job, operations in enumerate(jobs) for index in range(len(operations))}
    for job, index in sorted(wanted):
        if times[job, index] != 1:
            yield f"Operation {index} of job {job} is there {times[job, index]} times."
    for job, index in sorted(times.keys() - wanted):
        yield f"There is no operation {index} of job {job}."


def _wrong(jobs: Sequence[Job], rows: Sequence[Row], stop: Downtime, before: Sequence[Row]) -> Iterator[str]:
    began = {(row[0], row[1]): row[3] for row in before if row[3] < stop.since}
    for row in rows:
        name, (machine, duration), start, end = _name(row), jobs[row[0]][row[1]], row[3], row[4]
        if row[2] != machine:
            yield f"The {name} is on machine {row[2]}; it needs machine {machine}."
        if start < 0:
            yield f"The {name} starts before the beginning, at {start}."
        if machine == stop.machine and start < stop.since < start + duration:  # it goes on when the machine is back
            duration += stop.until - stop.since
        if end - start != duration:
            yield f"The {name} takes {end - start}; it needs {duration}."
        if machine == stop.machine and start != end and stop.since <= start < stop.until:
            yield f"The {name} starts at {start} on machine {machine}, which stands still until {stop.until}."
        was = began.get((row[0], row[1]))
        if was is not None and start != was:
            yield f"The {name} had begun at {was} and is said to begin at {start}."
        if was is None and start < stop.since:
            yield f"The {name} would begin at {start}, which was over at {stop.since}."
    for row, following in pairwise(sorted(rows, key=lambda row: (row[0], row[1]))):
        if row[0] == following[0] and following[3] < row[4]:
            yield f"The {_name(following)} starts at {following[3]}, before the one before it ends at {row[4]}."
    working = [row for row in rows if row[3] != row[4]]
    for row, following in pairwise(sorted(working, key=lambda row: (row[2], row[3], row[4]))):
        if row[2] == following[2] and following[3] < row[4]:
            yield f"Machine {row[2]} has the {_name(row)} and the {_name(following)} at {following[3]}."


def _name(row: Row) -> str:
    return f"operation {row[1]} of job {row[0]}"
