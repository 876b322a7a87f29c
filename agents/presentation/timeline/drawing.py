"""A row's own slice of the graph as SVG, written as one string of numbers and fixed words, since rows are many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from . import marks
from .lanes import MIDDLE
from .rows import TimelineRow

LINE = '<line class="line" data-lane="{}" x1="{}" x2="{}" y1="{}" y2="{}"/>'
CURVE = '<path class="line" data-lane="{}" d="{}"/>'
BARS = '<path class="bars" d="M{} 14.5h22"/><path class="bars" data-dash d="M{} 21.5h22"/>'
NODE = '<circle class="node" data-mark="{}" cx="{}" cy="{}" r="{}"/>'
GLYPH = '<path class="glyph" data-tone="{}" d="{}"/>'
HELD_SIGN = '<path class="bars" d="M{} 5.5h14"/><path class="bars" data-dash d="M{} 11h14"/>'


def join_parts(parts: Iterable[SafeString]) -> SafeString:
    """Join the parts into one slice."""
    inside = format_html_join("", "{}", ((part,) for part in parts))
    return format_html('<svg class="lanes" aria-hidden="true">{}</svg>', inside)


def parts(row: TimelineRow) -> Iterator[SafeString]:
    """Draw the lines that pass through, the curves that leave, and the row's mark."""
    for line in row.piece.lines:
        yield format_html(LINE, line.kind, line.x, line.x, line.top, line.bottom)
    for curve in row.piece.curves:
        yield format_html(CURVE, curve.kind, curve.d)
    x = row.piece.x
    yield format_html(BARS, x - 11, x - 11) if row.on_hold else _mark(row.mark.shape, x, MIDDLE)


def sign(shape: str) -> SafeString:
    """Draw a mark for the legend, in a square of 16 px."""
    inside = format_html(HELD_SIGN, 1, 1) if shape == "held" else _mark(shape, 8, 8)
    return format_html('<svg viewBox="0 0 16 16" aria-hidden="true">{}</svg>', inside)


def _mark(shape: str, x: int, y: int) -> SafeString:
    node = format_html(NODE, shape, x, y, marks.radius(shape))
    glyph = marks.glyph(shape, x, y)
    return format_html("{}" + GLYPH, node, marks.TONES.get(shape, ""), glyph) if glyph else node
