"""Draws the track of an impact: what is done, the hold line, what comes. Each mark is repeated as a word beside it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

DRAWN_BEFORE, DRAWN_AFTER = 8, 6  # nodes of a track
RADIUS = {"undone": 6}
# Mark -> (how far right of its node it begins, its path, its tone): an equals sign, an arrow back.
GLYPHS = {"reused": (-2, "12.8h4m-4 2.4h4", ""), "undone": (2.5, "14h-5m2-2-2 2 2 2", "stop")}


def draw(marks: Sequence[str], *, label: str) -> SafeString:
    """Draw the track: what is done, the hold line, what comes. Each mark is repeated as a word beside it."""
    held = marks.index("held") if "held" in marks else min(DRAWN_BEFORE, len(marks))
    inside = nodes((*marks[:held][-DRAWN_BEFORE:], *marks[held : held + 1 + DRAWN_AFTER]))
    return format_html('<svg class="track" viewBox="0 0 340 28" role="img" aria-label="{}">{}</svg>', label, inside)


@lru_cache(256)  # a gate's page draws a dozen, and most tracks are alike
def nodes(shown: tuple[str, ...]) -> SafeString:
    """Draw the nodes and the line between them."""
    gap = 322 / max(len(shown) - 1, 1)
    at = [round(9 + gap * number, 1) for number in range(len(shown))]
    lanes = ["ahead" if mark == "ahead" else "main" for mark in shown[1:]]
    lines = [
        format_html('<path class="line" data-lane="{}" d="M{} 14H{}"/>', lane, start, end)
        for lane, start, end in zip(lanes, at, at[1:], strict=False)
    ]
    parts = [*lines, *(node(mark, x) for mark, x in zip(shown, at, strict=True))]
    return format_html_join("", "{}", ((part,) for part in parts))


def node(mark: str, x: float) -> SafeString:
    if mark == "held":
        return format_html(
            '<rect x="{}" y="2" width="12" height="24" class="gap"/><path class="bars" d="M{} 3v22"/>'
            '<path class="bars" data-dash d="M{} 3v22"/>',
            round(x - 6, 1),
            round(x - 3.5, 1),
            round(x + 3.5, 1),
        )
    circle = format_html('<circle class="node" data-mark="{}" cx="{}" cy="14" r="{}"/>', mark, x, RADIUS.get(mark, 5))
    glyph = GLYPHS.get(mark)
    if glyph is None:
        return circle
    return format_html(
        '{}<path class="glyph" data-tone="{}" d="M{} {}"/>', circle, glyph[2], round(x + glyph[0], 1), glyph[1]
    )
