"""Charts on a card: drawings of what is in the saved state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from checkpoints.values import json_pointer

KINDS = ("gantt",)


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A drawing of data in the saved state. The gate binds the data by its checkpoint."""

    title: str
    pointer: str  # where in the state its data are, in the shape that the kind needs
    kind: str = "gantt"  # approvals.presentation.drawing.gantt
    figures: Sequence[tuple[str, str]] = ()  # (label, text): set side by side with the other charts'

    def __post_init__(self) -> None:
        object.__setattr__(self, "figures", tuple((str(label), str(text)) for label, text in self.figures))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object with every field."""
        return {**asdict(self), "figures": [list(each) for each in self.figures]}


def faults_of(charts: Sequence[Chart], state: Mapping[str, Any]) -> list[str]:
    """List what is wrong with a card's charts, a sentence each."""
    faults = []
    for chart in charts:
        if not chart.title.strip():
            faults.append(f"the chart of {chart.pointer} needs a title that says what it shows")
        if chart.kind not in KINDS:
            faults.append(f"the chart of {chart.pointer} is of the kind {chart.kind!r}; there is {', '.join(KINDS)}")
        if not json_pointer.has_value(state, chart.pointer):
            faults.append(f"there is nothing at {chart.pointer} in the state to draw")
    return faults
