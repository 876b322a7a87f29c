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

from benchmarks.figures import format_figure, format_table

# A mark's name with its section, its figure and unit, what stands beside it, and its aim.
ROW = re.compile(r"\| (\w+: [^|]+?) +\| (-?[\d,.]+(?:e[+-]\d+)?) ?([^|]*?) *\|[^|]*\| (<=|>=)?")
NOISE = 0.05
Row = tuple[float, str, bool]  # the figure, its unit, and whether more is better


def main(old: str, new: str) -> None:
    """Print the table."""
    print(compare_tables(Path(old).read_text(), Path(new).read_text()))


def compare_tables(old: str, new: str) -> str:
    """Format a row for each figure of either text, those of both with their ratio."""
    before, after = read_rows(old), read_rows(new)
    rows = [["mark", "old", "new", "new/old", ""]]
    for name in before | after:
        _, unit, grows = (after.get(name) or before[name])[-1]
        figures = [statistics.median(row[0] for row in state[name]) if name in state else None
                   for state in (before, after)]  # fmt: skip
        cells = ["" if figure is None else f"{format_figure(figure)} {unit}".strip() for figure in figures]
        rows.append([name, *cells, *_judge(*figures, grows=grows)])
    return format_table(rows)


def read_rows(text: str) -> dict[str, list[Row]]:
    """Read the rows of all tables in a text, by name."""
    rows = defaultdict(list)
    for name, measured, unit, sign in ROW.findall(text):
        grows = sign == ">=" or (not sign and ("/s" in unit or "a second" in unit))
        rows[name].append((float(measured.replace(",", "")), unit, grows))
    return dict(rows)


def _judge(old: float | None, new: float | None, *, grows: bool) -> tuple[str, str]:
    if old is None or new is None:
        return "", ""
    ratio = 1.0 if old == new else new / old if old else float("inf")
    changed = "" if abs(ratio - 1) <= NOISE else "better" if (ratio > 1) == grows else "worse"
    return f"{ratio:.2f}", changed


if __name__ == "__main__":
    main(*sys.argv[1:])
