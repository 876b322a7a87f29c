"""Puts the printed tables of two states of the code beside each other.

    python -m benchmarks.compare OLD NEW

Each file is what `make bench` printed, once or several times (`>>`): of several, the median counts. A row is worse or
better where it differs by more than a twentieth.
"""

from __future__ import annotations

import re
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from benchmarks.figures import digits, format_table

# A mark's name with its section, its figure and unit, what stands beside it, and its aim.
ROW = re.compile(r"\| (\w+: [^|]+?) +\| (-?[\d,.]+(?:e[+-]\d+)?) ?([^|]*?) *\|[^|]*\| (<=|>=)?")
NOISE = 0.05


class Row(NamedTuple):
    """A figure of one printed table."""

    name: str
    measured: float
    unit: str
    sign: str

    @property
    def grows(self) -> bool:
        """Tell whether more is better."""
        return self.sign == ">=" or (not self.sign and ("/s" in self.unit or "a second" in self.unit))


def main(old: str, new: str) -> None:
    """Print the table."""
    print(compare_tables(Path(old).read_text(), Path(new).read_text()))


def compare_tables(old: str, new: str) -> str:
    """Format a row for each figure of either text, those of both with their ratio."""
    before, after = read_rows(old), read_rows(new)
    rows = [["mark", "old", "new", "new/old", ""]]
    for name in before | after:
        figures = [statistics.median(row.measured for row in state[name]) for state in (before, after) if name in state]
        last = (after.get(name) or before[name])[-1]
        cells = [f"{digits(figure)} {last.unit}".strip() for figure in figures]
        if len(figures) == 2:
            rows.append([name, *cells, *_judge(figures[0], figures[1], grows=last.grows)])
        else:
            rows.append([name, *(["", *cells] if name in after else [*cells, ""]), "", ""])
    return format_table(rows)


def read_rows(text: str) -> dict[str, list[Row]]:
    """Read the rows of all tables in a text, by name."""
    rows = defaultdict(list)
    for name, measured, unit, sign in ROW.findall(text):
        rows[name].append(Row(name, float(measured.replace(",", "")), unit, sign))
    return dict(rows)


def _judge(old: float, new: float, *, grows: bool) -> tuple[str, str]:
    if old == new:
        return "1", ""
    ratio = new / old if old else float("inf")
    if abs(ratio - 1) <= NOISE:
        return f"{ratio:.2f}", ""
    return f"{ratio:.2f}", "better" if (ratio > 1) == grows else "worse"


if __name__ == "__main__":
    main(*sys.argv[1:])
