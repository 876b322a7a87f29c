"""The place of each row of a timeline, and the part of the graph that it draws.

A run is a tree of checkpoints; its rows are shown in the order they came. The path from the root to the head
keeps lane 0. Abandoned branches and forks are cut into chains of neighbours, and each chain
gets the first lane that is free from the row it leaves to the row that it ends in. A row then draws only its
own slice: the lines that pass, the curve that leaves, the node. Nothing else of the graph need be known to
draw it again, so a page can replace one row and leave the others.

Lane n lies at x = 14 + 22 n, a node at y = 18, and lines run to 100 % of a row that may be any height over 40.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from agents.pages.run import marks

FIRST, STRIDE, MIDDLE, BEND = 14, 22, 18, 38

Kind = Literal["main", "rejected", "fork", "ahead", "back"]
LINE = '<line class="line" data-lane="{}" x1="{}" x2="{}" y1="{}" y2="{}"/>'
CURVE = '<path class="line" data-lane="{}" d="{}"/>'
BARS = '<path class="bars" d="M{} 14.5h22"/><path class="bars" data-dash d="M{} 21.5h22"/>'
NODE = '<circle class="node" data-mark="{}" cx="{}" cy="{}" r="{}"/>'
GLYPH = '<path class="glyph" data-tone="{}" d="{}"/>'
HELD_SIGN = '<path class="bars" d="M{} 5.5h14"/><path class="bars" data-dash d="M{} 11h14"/>'


@dataclass(frozen=True, slots=True)
class LaneNode:
    """One row, as the layout sees it.

    `parent` is the key of the row it follows; one that is not among the rows lies above them. `abandoned_tip` is
    the key of the row that was the head before this one was rewound to. At a row `on_hold` the hold line replaces the
    node, and the lines stop on both sides of it.
    """

    key: str
    parent: str = ""
    kind: Kind = "main"
    abandoned_tip: str = ""
    on_hold: bool = False


@dataclass(slots=True)
class LaneSlice:
    """The part of the graph that one row draws, and the place of its own node.

    `lines` are vertical: kind, x, and both ends as SVG lengths within the row. `curves` change their lane: kind, and
    SVG path data.
    """

    lane: int
    x: int
    on_hold: bool = False
    lines: list[tuple[Kind, int, str, str]] = field(default_factory=list)
    curves: list[tuple[Kind, str]] = field(default_factory=list)


def lay_out(nodes: Sequence[LaneNode]) -> list[LaneSlice]:
    """Return a slice for each of `nodes`, in their order. Keys are unique; a parent comes before its children."""
    at = {node.key: row for row, node in enumerate(nodes)}
    lanes = _lanes(nodes, at)
    slices = [LaneSlice(lane, FIRST + STRIDE * lane, node.on_hold) for lane, node in zip(lanes, nodes, strict=True)]
    for row, node in enumerate(nodes):
        if node.parent:
            _draw_edge(slices, at.get(node.parent, -1), row, node.kind)
        if node.abandoned_tip in at:
            _draw_return(slices, at[node.abandoned_tip], row)
    return slices


def count_lanes(slices: Sequence[LaneSlice]) -> int:
    """Return the number of lanes, at least one."""
    return max((piece.lane for piece in slices), default=0) + 1


def _lanes(nodes: Sequence[LaneNode], at: dict[str, int]) -> list[int]:
    """Return a lane for each row: 0 for the main path and the steps ahead, the first free one for every other chain."""
    ends = {node.abandoned_tip: row for row, node in enumerate(nodes) if node.abandoned_tip}
    lanes: list[int] = []
    chain_of: dict[str, int] = {}  # row key -> index of its chain
    spans: list[list[int]] = []  # chain -> [row it leaves, row it ends in]
    tips: list[str] = []
    for row, node in enumerate(nodes):
        if node.kind in ("main", "ahead"):
            lanes.append(0)
            continue
        chain = chain_of.get(node.parent, -1)
        if chain < 0 or tips[chain] != node.parent or node.kind == "fork":
            chain = len(spans)
            spans.append([at.get(node.parent, -1), row])
            tips.append(node.key)
        chain_of[node.key], tips[chain] = chain, node.key
        spans[chain][1] = ends.get(node.key, row)
        lanes.append(-chain - 1)
    chosen = choose_lanes(spans)
    return [chosen[-mark - 1] if mark < 0 else 0 for mark in lanes]


def choose_lanes(spans: Sequence[Sequence[int]]) -> list[int]:
    """Return for each span of rows the first lane beside the main one that no overlapping earlier span has."""
    chosen: list[int] = []
    for start, end in spans:
        taken = {lane for lane, (first, last) in zip(chosen, spans, strict=False) if first < end and start < last}
        chosen.append(next(lane for lane in range(1, len(spans) + 1) if lane not in taken))
    return chosen


def _draw_edge(slices: list[LaneSlice], start: int, end: int, kind: Kind) -> None:
    """Draw the line from the row `start` (-1: above the first) down to the node of the row `end`."""
    target = slices[end]
    if start >= 0:
        origin = slices[start]
        if origin.lane == target.lane:
            origin.lines.append((kind, target.x, str(MIDDLE + 4 if origin.on_hold else MIDDLE), "100%"))
        else:
            middle = (MIDDLE + BEND) // 2
            bend = f"M{origin.x} {MIDDLE}C{origin.x} {middle + 6} {target.x} {middle - 6} {target.x} {BEND}"
            origin.curves.append((kind, bend))
            origin.lines.append((kind, target.x, str(BEND), "100%"))
    for passed in slices[start + 1 : end]:
        passed.lines.append((kind, target.x, "0", "100%"))
    target.lines.append((kind, target.x, "0", str(MIDDLE - 3 if target.on_hold else MIDDLE)))


def _draw_return(slices: list[LaneSlice], tip: int, end: int) -> None:
    """Draw the dashed line from the tip of an abandoned branch to the rewind that left it."""
    origin, target = slices[tip], slices[end]
    origin.lines.append(("back", origin.x, str(MIDDLE + 7), "100%"))
    for passed in slices[tip + 1 : end]:
        passed.lines.append(("back", origin.x, "0", "100%"))
    side = 8 if origin.x > target.x else -8
    bend = f"{origin.x} {MIDDLE - 4} {origin.x - side // 2} {MIDDLE} {target.x + side} {MIDDLE}"
    target.curves.append(("back", f"M{origin.x} 0C{bend}"))


def join_parts(parts: Iterable[SafeString]) -> SafeString:
    """Join the parts into one slice."""
    inside = format_html_join("", "{}", ((part,) for part in parts))
    return format_html('<svg class="lanes" aria-hidden="true">{}</svg>', inside)


def draw_slice(piece: LaneSlice, shape: str) -> SafeString:
    """Draw the lines that pass through, the curves that leave, and the row's mark."""
    parts = [format_html(LINE, kind, x, x, top, bottom) for kind, x, top, bottom in piece.lines]
    parts += [format_html(CURVE, kind, path) for kind, path in piece.curves]
    bars = format_html(BARS, piece.x - 11, piece.x - 11)
    return join_parts([*parts, bars if shape == "held" else _mark(shape, piece.x, MIDDLE)])


def draw_sign(shape: str) -> SafeString:
    """Draw a mark for the legend, in a square of 16 px."""
    inside = format_html(HELD_SIGN, 1, 1) if shape == "held" else _mark(shape, 8, 8)
    return format_html('<svg viewBox="0 0 16 16" aria-hidden="true">{}</svg>', inside)


def _mark(shape: str, x: int, y: int) -> SafeString:
    node = format_html(NODE, shape, x, y, marks.RADIUS.get(shape, 5.5))
    glyph = marks.glyph(shape, x, y)
    return format_html("{}" + GLYPH, node, marks.TONES.get(shape, ""), glyph) if glyph else node
