"""Puts the marks of several runs beside each other, as the Markdown table of docs/performance.md.

    python -m benchmarks.compare FILE FILE FILE

Each file is what `python -m benchmarks --json FILE` wrote: a row shows each run's figure and the median.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.marks import Mark, read, shown, table


def main(files: Sequence[str]) -> None:
    """Print the table."""
    print(compared([read(json.dumps(each) for each in json.loads(Path(file).read_text())) for file in files]))


def compared(runs: Sequence[Sequence[Mark]]) -> str:
    """Format a row for each mark that any of the runs reached."""
    head = ["mark", *(f"run {number}" for number in range(1, len(runs) + 1)), "median", "beside it", "aim", "holds"]
    by_name = [{(mark.section, mark.name): mark for mark in run} for run in runs]
    names = dict.fromkeys(name for run in by_name for name in run)
    return table([head, *(_row([run.get(name) for run in by_name]) for name in names)])


def _row(marks: Sequence[Mark | None]) -> list[str]:
    found = [each for each in marks if each]
    name, _, _, aim, _ = found[-1].cells
    middle = statistics.median(each.measured for each in found)
    beside = "; ".join(" / ".join(each.beside[key] for each in found if key in each.beside).join((f"{key} ", ""))
                       for key in found[-1].beside)  # fmt: skip
    held = sum(each.verdict == "holds" for each in found)
    figures = [shown(each.measured) if each else "" for each in marks]
    verdict = f"{held} of {len(found)}" if aim else ""
    return [name, *figures, f"{shown(middle)} {found[-1].unit}".strip(), beside, aim, verdict]


if __name__ == "__main__":
    main(sys.argv[1:])
