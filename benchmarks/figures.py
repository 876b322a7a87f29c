"""Figures: what a section measures, each with its aim and what was measured in the same run, and their table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

HEAD = ["mark", "measured", "beside it", "aim", ""]


@dataclass(frozen=True)
class Figure:
    """One figure; `parts` are a floor, a peer or the parts of a ratio, measured in the same run."""

    name: str
    measured: float
    unit: str = ""
    most: float | None = None
    least: float | None = None
    parts: Mapping[str, str] = field(default_factory=dict)

    def cells(self, section: str) -> list[str]:
        """Return the figure as a row under HEAD."""
        aim, verdict = "", ""
        for sign, bound in (("<=", self.most), (">=", self.least)):
            if bound is not None:
                within = self.measured <= bound if sign == "<=" else self.measured >= bound
                aim, verdict = f"{sign} {format_figure(bound)}", "holds" if within else "MISSED"
        parts = ", ".join(f"{name} {value}" for name, value in self.parts.items())
        return [f"{section}: {self.name}", f"{format_figure(self.measured)} {self.unit}".strip(), parts, aim, verdict]


def format_figure(figure: float) -> str:
    """Format a figure with three digits that count."""
    return f"{figure:,.0f}" if abs(figure) >= 100 else f"{figure:.3g}"


def format_table(rows: Iterable[Iterable[str]]) -> str:
    """Format rows, the first of which is the head, as a Markdown table whose columns align."""
    cells = [list(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [" | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in cells]
    lines.insert(1, " | ".join("-" * width for width in widths))
    return "\n".join(f"| {line} |" for line in lines)
