"""An agent's figures as bars. Pure.

Every bar has its words and number beside it, and its parts differ in height as well as in colour. Places are
percentages, as attributes of SVG: the pages' policy refuses a style attribute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agents.runs.stats import AgentFigures
from approvals.insights.durations import SPANS

ENDS = ("completed", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class BarPart:
    """A part of a bar: its start and its width, in percent of the bar as SVG takes it."""

    status: str
    number: int
    start: str
    width: str


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of several, with the words and the number beside it."""

    label: str
    number: int
    width: str


def ends(figures: AgentFigures) -> list[BarPart]:
    """Return one bar of how runs ended; a status without runs gets no part."""
    parts, start = list[BarPart](), 0.0
    for status in ENDS:
        if number := figures.statuses.get(status, 0):
            width = 100 * number / figures.ended
            parts.append(BarPart(status, number, _percent(start), _percent(width)))
            start += width
    return parts


def waits(figures: AgentFigures) -> list[Bar]:
    """Return a bar for each span of waiting for a decision, relative to the longest bar."""
    labels = [str(words) for words, _ in SPANS.values()]
    return bars(labels, list(figures.within.values())) if figures.decided else []


def bars(labels: Sequence[str], numbers: Sequence[int]) -> list[Bar]:
    """Return a bar for each number; the largest takes the whole width."""
    most = max(numbers, default=0) or 1
    return [Bar(label, number, _percent(100 * number / most)) for label, number in zip(labels, numbers, strict=True)]


def _percent(share: float) -> str:
    return f"{share:.2f}%"
