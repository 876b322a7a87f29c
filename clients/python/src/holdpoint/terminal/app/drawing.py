"""Draws lines in Textual, whose own markup no agent's text reaches."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text
from textual.widgets import Static

from ..lines import BOLD, GO, HOLD, PEN, QUOTE, SOFT, STOP, Line, Span

STYLES = {BOLD: "bold", SOFT: "dim", GO: "green", STOP: "red", HOLD: "yellow", PEN: "blue", QUOTE: "italic"}


def draw_cell(span: Span) -> Text:
    """Return words as a cell of a table."""
    return Text(span.text, style=STYLES.get(span.style, ""), no_wrap=True, overflow="ellipsis")


def text(lines: Iterable[Line]) -> Text:
    """Return lines as one text."""
    whole = Text()
    for at, line in enumerate(lines):
        whole.append("\n" if at else "")
        for part in line:
            whole.append(part.text, STYLES.get(part.style))
    return whole


class Lines(Static):
    """A part of a screen that shows lines."""

    def __init__(self, lines: Iterable[Line] = (), **more: str | None) -> None:
        super().__init__(text(lines), markup=False, **more)  # type: ignore[arg-type]

    def show(self, lines: Iterable[Line]) -> None:
        """Show other lines."""
        self.update(text(lines))
