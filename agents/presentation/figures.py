"""An agent's figures as bars. Pure.

Every bar has its words and number beside it, and its parts differ in height as well as in colour. Places are
percentages, as attributes of SVG: a style of an element's own is refused by the pages' policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from agents.runs.stats import WITHIN, AgentFigures
from approvals.presentation.drawing.times import lasting

ENDS = ("completed", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class BarPart:
    """A stretch of a bar: where it begins and how long it is, in percent of the bar as SVG takes it."""

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
    """Return, as one bar, how runs ended; a status that no run has gets no part."""
    parts, start = list[BarPart](), 0.0
    for status in ENDS:
        if number := figures.statuses.get(status, 0):
            width = 100 * number / figures.ended
            parts.append(BarPart(status, number, _percent(start), _percent(width)))
            start += width
    return parts


def waits(figures: AgentFigures) -> list[Bar]:
    """Return how long gates waited for a decision, a bar for each span, against the longest of them."""
    labels = [*(_("up to %(time)s") % {"time": lasting(each)} for each in WITHIN), _("longer")]
    return bars(labels, figures.within) if figures.decided else []


def bars(labels: Sequence[str], numbers: Sequence[int]) -> list[Bar]:
    """Return a bar for each number, the largest as long as there is room."""
    most = max(numbers, default=0) or 1
    return [Bar(label, number, _percent(100 * number / most)) for label, number in zip(labels, numbers, strict=True)]


def _percent(share: float) -> str:
    return f"{share:.2f}%"
