"""Figures: how they are measured, each with its aim and what was measured in the same run, and their table."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import psutil

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


def compute_percentile(values: Sequence[float], percent: float) -> float:
    """Compute the nearest-rank percentile."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(percent / 100 * (len(ordered) - 1)))]


def resident_megabytes(pid: int) -> float:
    """Return the proportional set size of a process and its children, so that shared pages count once."""
    parent = psutil.Process(pid)
    total: int = sum(part.memory_full_info().pss for part in [parent, *parent.children(recursive=True)])
    return total / 1e6


def processor_seconds(pid: int) -> float:
    """Return what a process and its children, ended ones included, have used of the processor, user and system."""
    parent, spent = psutil.Process(pid), []
    for part in (parent, *parent.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):  # it has just ended, and is counted with its parent
            spent.append(part.cpu_times())
    return float(sum(part.user + part.system + part.children_user + part.children_system for part in spent))


@contextmanager
def record_commits() -> Iterator[list[int]]:
    """Record the times of this thread's commits: right after each, before anything that waits for it."""
    from django.db import connection

    moments: list[int] = []
    hooks = connection.run_and_clear_commit_hooks

    def marked() -> None:
        moments.append(time.monotonic_ns())
        hooks()

    with mock.patch.object(connection, "run_and_clear_commit_hooks", marked):
        yield moments


def wait_for_word(name: str, *, within: float = 60.0) -> str:
    """Wait for the next word that a worker passes on: in short waits, since a silent connection ends and loses it."""
    from benchmarks.agents import times_connection

    end = time.monotonic() + within
    while time.monotonic() < end:
        word: Any = times_connection().blpop([name], timeout=1)
        if word is not None:
            return str(word[1].decode())
    raise TimeoutError(f"no worker passed on {name}; is the worker alive?")
