"""Reads a job shop from text in the standard form.

That is a line "jobs machines", then one line a job with a pair "machine duration" for each of its operations, in the
order in which they are done. Machines count from 0. Blank lines, and comments after #, are skipped. Nothing is guessed:
all faults are reported at once, each with its line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MOST_OPERATIONS = 2_500
LONGEST = 1_000_000  # of one operation, in whatever unit the file is in

Job = list[tuple[int, int]]  # (machine, duration) of each operation, in order


class InstanceRefused(ValueError):
    """The text is no job shop; `faults` says of each line what is wrong with it."""

    def __init__(self, faults: list[str]) -> None:
        self.faults = faults
        super().__init__("; ".join(faults))


@dataclass(frozen=True)
class Shop:
    """One job shop: `jobs` in the order of their lines."""

    machines: int
    jobs: list[Job]


def read_shop(text: str) -> Shop:
    """Return the shop of a text. Raises InstanceRefused."""
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
        raise InstanceRefused(faults)
    (header, size), *rest = lines
    count, machines = map(int, size)
    if not 0 < count * machines <= MOST_OPERATIONS:
        raise InstanceRefused([f"line {header}: a shop has 1 to {MOST_OPERATIONS:,} operations"])
    if len(rest) != count:
        faults.append(f"line {header}: it says {count} jobs, and there are {len(rest)}")
    jobs = [_read_job(number, list(map(int, words)), machines, faults) for number, words in rest]
    if faults:
        raise InstanceRefused(faults)
    return Shop(machines, jobs)


def _read_job(line: int, numbers: list[int], machines: int, faults: list[str]) -> Job:
    if len(numbers) != 2 * machines:
        faults.append(f"line {line}: it should hold {machines} pairs of a machine and a duration")
    job = list(zip(numbers[::2], numbers[1::2], strict=False))
    faults += [
        f"line {line}: there is no machine {at}; they count 0 to {machines - 1}" for at, _ in job if at >= machines
    ]
    faults += [f"line {line}: {time} is longer than {LONGEST:,}" for _, time in job if time > LONGEST]
    return job


def write_shop(jobs: Sequence[Sequence[Sequence[int]]], machines: int) -> str:
    """Return a shop as text."""
    rows = ("  ".join(f"{machine} {duration}" for machine, duration in job) for job in jobs)
    return "\n".join([f"{len(jobs)} {machines}", *rows]) + "\n"
