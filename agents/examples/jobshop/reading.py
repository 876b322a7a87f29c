"""Reads job shops from text, in the two forms in which they are published.

The standard form has a line "jobs machines", then one line a job with a pair "machine duration" for each of its
operations, in the order in which they are done. Taillard's form has two tables of one line a job: after a line
"Times" the durations, after a line "Machines" the machines; his files hold several shops one below the other, each
under a header line that may go on with seeds and bounds. Blank lines and comments after #, %, // or ; are
skipped. Machines count from 0, or from 1 where none is 0 and one equals the number of machines.

Nothing is guessed: all faults are reported at once, each with its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

MOST_OPERATIONS = 2_500
LONGEST = 1_000_000  # of one operation, in whatever unit the file is in

Job = list[tuple[int, int]]  # (machine, duration) of each operation, in order

_COMMENT = re.compile(r"(#|%|//|;).*")
_NUMBER = re.compile(r"[0-9]{1,12}")
_WORDS = re.compile(r"[A-Za-z]")
_TABLE = re.compile(r"(times|machines)\b", re.IGNORECASE)


class InstanceRefused(ValueError):
    """The text is no job shop; `faults` says of each line what is wrong with it."""

    def __init__(self, faults: list[str]) -> None:
        self.faults = faults
        super().__init__("; ".join(faults))


@dataclass(frozen=True)
class Shop:
    """One job shop: `jobs` in the order of their lines, machines counted from 0."""

    machines: int
    jobs: list[Job]


@dataclass(frozen=True)
class _Line:
    number: int
    text: str


@dataclass
class _Block:
    """One shop of Taillard's form: its size, and the lines of its tables."""

    header: _Line
    tables: dict[str, list[_Line]] = field(default_factory=dict)


def read(text: str) -> list[Shop]:
    """Every shop of the text, in its order; at least one. Raises InstanceRefused."""
    lines = list(_lines(text))
    if not lines:
        raise InstanceRefused(["line 1: there is nothing in it but comments and blank lines"])
    faults: list[str] = []
    if any(_TABLE.match(line.text) for line in lines):
        shops = [_two_tables(block, faults) for block in _blocks(lines, faults)]
    else:
        shops = [_pairs(lines, faults)]
    if faults:
        raise InstanceRefused(faults)
    return shops


def written(shop: Shop) -> str:
    """Return a shop as text in the standard form."""
    rows = ("  ".join(f"{machine} {duration}" for machine, duration in job) for job in shop.jobs)
    return "\n".join([f"{len(shop.jobs)} {shop.machines}", *rows]) + "\n"


def _lines(text: str) -> Iterator[_Line]:
    for number, raw in enumerate(text.lstrip("\ufeff").splitlines(), 1):
        if kept := _COMMENT.sub("", raw).strip():
            yield _Line(number, kept)


def _pairs(lines: list[_Line], faults: list[str]) -> Shop:
    size = _size(lines[0], faults, exactly=True)
    if size is None:
        return Shop(0, [])
    count, machines = size
    rows = _rows(lines[1:], count, 2 * machines, f"{machines} pairs of a machine and a duration", lines[0], faults)
    table = {line.number: ([*row[::2]], [*row[1::2]]) for line, row in rows}
    return _shop(machines, table, faults)


def _two_tables(block: _Block, faults: list[str]) -> Shop:
    size = _size(block.header, faults, exactly=False)
    if size is None:
        return Shop(0, [])
    count, machines = size
    found = {}
    for name, said in (("times", f"{machines} durations"), ("machines", f"{machines} machines")):
        if name not in block.tables:
            faults.append(f"line {block.header.number}: the table “{name.capitalize()}” of this shop is missing")
            return Shop(0, [])
        found[name] = _rows(block.tables[name], count, machines, said, block.header, faults)
    both = zip(found["machines"], found["times"], strict=False)
    return _shop(machines, {line.number: (visited, times) for (line, visited), (_, times) in both}, faults)


def _blocks(lines: list[_Line], faults: list[str]) -> list[_Block]:
    """Split a text in Taillard's form into shops. Other words than the two tables' are labels, and are passed over."""
    blocks: list[_Block] = []
    rows: list[_Line] | None = None
    for line in lines:
        if found := _TABLE.match(line.text):
            if not blocks:
                faults.append(f"line {line.number}: a table before any line with the numbers of jobs and machines")
                return []
            rows = blocks[-1].tables.setdefault(found[1].lower(), [])
        elif _WORDS.search(line.text):
            rows = None
        elif rows is None or _full(blocks[-1]):
            blocks.append(_Block(line))
            rows = None
        else:
            rows.append(line)
    return blocks


def _full(block: _Block) -> bool:
    """Tell whether a shop has all its lines, so that the next line of numbers begins another."""
    numbers = block.header.text.split()
    count = int(numbers[0]) if _NUMBER.fullmatch(numbers[0]) else 0
    return len(block.tables) == 2 and all(len(rows) >= count for rows in block.tables.values())


def _size(line: _Line, faults: list[str], *, exactly: bool) -> tuple[int, int] | None:
    """(jobs, machines) of a header line."""
    numbers = _numbers(line, faults)
    if numbers is None:
        return None
    where = f"line {line.number}"
    if len(numbers) < 2 or (exactly and len(numbers) > 2):
        faults.append(f"{where}: it should hold two numbers, of jobs and of machines; it holds {len(numbers)}")
        return None
    count, machines = numbers[:2]
    if not count or not machines:
        faults.append(f"{where}: a shop needs a job and a machine; it says {count} and {machines}")
        return None
    if count * machines > MOST_OPERATIONS:
        faults.append(
            f"{where}: {count} jobs of {machines} operations are more than the {MOST_OPERATIONS:,} that are taken"
        )
        return None
    return count, machines


def _rows(
    lines: list[_Line], count: int, width: int, said: str, header: _Line, faults: list[str]
) -> list[tuple[_Line, list[int]]]:
    """Return the lines that are jobs, each with its numbers. What is wrong with the others goes into `faults`."""
    found = []
    for job, line in enumerate(lines):
        if job >= count:
            faults.append(f"line {line.number}: line {header.number} says {count} jobs, and this is one more")
            break
        numbers = _numbers(line, faults)
        if numbers is None:
            continue
        if len(numbers) != width:
            faults.append(f"line {line.number}: job {job} needs {width} numbers, {said}; it has {len(numbers)}")
            continue
        found.append((line, numbers))
    if len(lines) < count:
        last = lines[-1] if lines else header
        faults.append(f"line {last.number}: after it {count - len(lines)} of {count} jobs are missing")
    return found


def _shop(machines: int, table: dict[int, tuple[list[int], list[int]]], faults: list[str]) -> Shop:
    """Make a shop from a table: by line, the machines that a job visits and for how long."""
    visited = {machine for row, _ in table.values() for machine in row}
    base = 1 if visited and 0 not in visited and max(visited) == machines else 0
    jobs = []
    for line, (row, times) in table.items():
        for machine in row:
            if not 0 <= machine - base < machines:
                faults.append(f"line {line}: there is no machine {machine}; they count {base} to {base + machines - 1}")
        for duration in times:
            if duration > LONGEST:
                faults.append(f"line {line}: {duration} is longer than the {LONGEST:,} that are taken")
        jobs.append([(machine - base, duration) for machine, duration in zip(row, times, strict=True)])
    return Shop(machines, jobs)


def _numbers(line: _Line, faults: list[str]) -> list[int] | None:
    """Return the line's numbers, None if one of its words is no number."""
    words = line.text.split()
    wrong = [word for word in words if not _NUMBER.fullmatch(word)]
    for word in wrong:
        faults.append(f"line {line.number}: “{word[:40]}” is no whole number of 0 or more")
    return None if wrong else [int(word) for word in words]
