"""The marks: figures with their aims. A section prints each as it is reached, and the last summary has all of them.

A section sends its marks to the run through the file that BENCH_MARKS names, one JSON object a line, so that
one that is cut off half-way keeps those it had reached. The aim stands where the figure is measured, and nowhere else.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

FILE, SECTION = "BENCH_MARKS", "BENCH_SECTION"  # of a section's environment


@dataclass(frozen=True)
class Mark:
    """One figure, what was measured beside it in the same run, and its aim, if it has one."""

    section: str
    name: str
    measured: float
    unit: str = ""
    aim: tuple[str, float] | None = None  # "<=" or ">=", and the bound
    beside: dict[str, str] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """Return "holds", "MISSED", or nothing where there is no aim."""
        if self.aim is None:
            return ""
        sign, bound = self.aim
        return "holds" if (self.measured <= bound if sign == "<=" else self.measured >= bound) else "MISSED"

    @property
    def cells(self) -> list[str]:
        """Return the mark as the cells of a table: name, figure, what stands beside it, aim, verdict."""
        beside = ", ".join(f"{name} {value}" for name, value in self.beside.items())
        aim = f"{self.aim[0]} {shown(self.aim[1])}" if self.aim else ""
        return [
            f"{self.section}: {self.name}",
            f"{shown(self.measured)} {self.unit}".strip(),
            beside,
            aim,
            self.verdict,
        ]


def mark(
    name: str,
    measured: float,
    unit: str = "",
    *,
    most: float | None = None,
    least: float | None = None,
    beside: dict[str, str] | None = None,
) -> None:
    """Print a figure that is to be at most, or at least, so much, and keep it for the summary.

    `beside` says what was measured in the same run: a peer, a floor, the parts of a ratio.
    """
    aim = ("<=", most) if most is not None else (">=", least) if least is not None else None
    made = Mark(os.environ.get(SECTION, ""), name, round(measured, 4), unit, aim, beside or {})
    _, figure, others, bound, verdict = made.cells
    notes = "; ".join(part for part in (bound and f"aim {bound}", others) if part)
    print(f"  * {name}: {figure}{f' ({notes})' if notes else ''} {verdict}".rstrip(), flush=True)
    if path := os.environ.get(FILE):
        with Path(path).open("a") as file:
            file.write(json.dumps(asdict(made)) + "\n")


def read(lines: Iterable[str]) -> list[Mark]:
    """Read marks that were kept."""
    return [Mark(**found | {"aim": found["aim"] and tuple(found["aim"])}) for found in map(json.loads, lines)]


def shown(figure: float) -> str:
    """Format a figure with three digits that count."""
    return f"{figure:,.0f}" if abs(figure) >= 100 else f"{figure:.3g}"


def table(rows: Iterable[Iterable[str]]) -> str:
    """Format rows, the first of which is the head, as a Markdown table whose columns align."""
    cells = [list(row) for row in rows]
    widths = [max(len(row[at]) for row in cells) for at in range(len(cells[0]))]
    lines = [" | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in cells]
    lines.insert(1, " | ".join("-" * width for width in widths))
    return "\n".join(f"| {line} |" for line in lines)
