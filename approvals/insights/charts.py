"""Draws charts as SVG on the server, without any colour, font, script or style of its own: the page's CSS has them.

pygal lays the marks out. What the pages' policy refuses, and what only its own script could show, is taken out of its
tree; and each link leads to the gates that the mark counts. A chart is drawn for the eye alone: the table behind it
holds the same numbers and links as words.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

import pygal
from django.utils.safestring import SafeString, mark_safe
from pygal.style import Style

# pygal finds its plugins, of which none is used, by a finder of an old kind, about which every later import would warn.
sys.meta_path[:] = [protocol for protocol in sys.meta_path if not isinstance(protocol, pygal.PluginImportFixer)]

WIDTH, HEIGHT = 360, 200  # as narrow as a phone's page, so that its letters stay legible there
ROW = 30  # height of a bar that lies
LABEL = 12  # px, of letters
NAME = 18  # letters of a name beside a bar that lies
_XLINK = "{http://www.w3.org/1999/xlink}href"
_DROPPED = frozenset({"defs", "desc", "title"})  # by their tags
_OVERLAYS = frozenset({"plot tooltip-overlay", "plot text-overlay", "titles"})  # by their classes
_OTHERS = frozenset({"bar", "bars"})  # classes that mean something else in the page's CSS
_STYLE = Style(label_font_size=LABEL, major_label_font_size=LABEL, value_font_size=LABEL, no_data_font_size=LABEL)

Marks = Sequence[tuple[float | None, str]]  # a number, None for a gap, and the address of its gates; "" for no link


def lying_bars(names: Sequence[str], series: Mapping[str, Marks]) -> SafeString:
    """Draw lying bars, the first name on top, the series stacked on each other."""
    short = [name if len(name) <= NAME else name[: NAME - 1] + "…" for name in reversed(names)]
    turned = {label: list(reversed(marks)) for label, marks in series.items()}
    return _draw_chart(pygal.HorizontalStackedBar, short, turned, height=ROW * (len(names) + 1))


def lines(names: Sequence[str], series: Mapping[str, Marks], *, unit: str = "") -> SafeString:
    """Draw a line for each series; a number that is None is a gap."""
    return _draw_chart(pygal.Line, names, series, height=HEIGHT, unit=unit, show_dots=True, dots_size=2)


def _draw_chart(
    chart: Any, names: Sequence[str], series: Mapping[str, Marks], *, height: int, unit: str = "", **more: Any
) -> SafeString:
    every = max(1, -(-len(names) // 6))  # names at the axis of many days
    drawing = chart(
        width=WIDTH, height=height, explicit_size=False, js=[], style=_STYLE, show_legend=False, margin=2, spacing=6,
        show_x_guides=False, print_values=False, min_scale=2, max_scale=4, include_x_axis=True, order_min=0,
        value_formatter=lambda number: f"{number:g} {unit}".strip(), no_data_text="", disable_xml_declaration=True,
        truncate_label=-1, **more,
    )  # fmt: skip
    drawing.x_labels = list(names)
    if chart is not pygal.HorizontalStackedBar:
        drawing.x_labels_major = list(names)[::every]
        drawing.show_minor_x_labels = False
    for label, marks in series.items():
        drawing.add(label, [{"value": number, "xlink": {"href": to}} if to else number for number, to in marks])
    root = drawing.render_tree()
    _clean(root)
    root.attrib.pop("id", None)
    root.attrib |= {"class": "chart", "aria-hidden": "true", "focusable": "false"}
    return mark_safe(ElementTree.tostring(root, encoding="unicode"))  # noqa: S308 - its texts are escaped there


def _clean(parent: Any) -> None:
    """Take out of the tree what pygal's own script and style would use."""
    for child in list(parent):
        if not isinstance(child.tag, str) or child.tag in _DROPPED or child.attrib.get("class") in _OVERLAYS:
            parent.remove(child)
            continue
        for name in ("style", "id"):
            child.attrib.pop(name, None)
        if child.attrib.get("class") in _OTHERS:
            child.attrib.pop("class")
        if child.tag == "a":
            child.attrib.pop("target", None)
            child.attrib |= {"href": child.attrib.pop(_XLINK), "tabindex": "-1"}
        _clean(child)
