"""Template filters of the administration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import capfirst

register = template.Library()
OPENINGS = ("<td", "<th")


@register.filter
def labelled(cells: Iterable[str], headers: Iterable[dict[str, Any]]) -> Iterator[SafeString]:
    """Add its column's name to each cell of a row that Django has rendered."""
    for cell, header in zip(cells, headers, strict=True):
        opening, rest = cell[:3], cell[3:]
        if opening not in OPENINGS:
            raise ValueError(f"This is no cell of a table: {cell[:40]!r}")
        label = format_html(' data-label="{}"', capfirst(header["text"]))
        yield mark_safe(f"{opening}{label}{rest}")  # noqa: S308 - Django's own markup, and a label that is escaped
