"""A row's own slice of the graph as SVG. Rows are many, so each is written as one string, of numbers and our words."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from .lanes import MIDDLE
from .rows import TimelineRow

LINE = '<line class="line" data-lane="{}" x1="{}" x2="{}" y1="{}" y2="{}"/>'
CURVE = '<path class="line" data-lane="{}" d="{}"/>'
BARS = '<path class="bars" d="M{} 14.5h22"/><path class="bars" data-dash d="M{} 21.5h22"/>'
NODE = '<circle class="node" data-mark="{}" cx="{}" cy="{}" r="{}"/>'
GLYPH = '<path class="glyph" data-tone="{}" d="{}"/>'


def lanes(row: TimelineRow) -> SafeString:
    """Draw the lines that pass, the curve that leaves, and the row's mark."""
    return format_html('<svg class="lanes" aria-hidden="true">{}</svg>', format_html_join("", "{}", _parts(row)))


def _parts(row: TimelineRow) -> Iterator[tuple[SafeString]]:
    for line in row.piece.lines:
        yield (format_html(LINE, line.kind, line.x, line.x, line.top, line.bottom),)
    for curve in row.piece.curves:
        yield (format_html(CURVE, curve.kind, curve.d),)
    if row.held:
        yield (format_html(BARS, row.bars, row.bars),)
        return
    yield (format_html(NODE, row.mark.shape, row.piece.x, MIDDLE, row.radius),)
    if row.glyph:
        yield (format_html(GLYPH, row.tone, row.glyph),)
