"""Renders a whole value: a list as its values, objects of one kind as a table, an object by its names.

For values that a reader must see whole, such as pinned ones: nothing is folded or clamped as long as the page has room,
and only very deep parts are JSON. `whole` is the address that shows all of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from . import files, size_limit, state_tree, untrusted

DEPTH = 3  # below it the rest is JSON
COLUMNS = 6


def out(value: Any, *, whole: str = "", depth: int = 0) -> SafeString:
    """Render any JSON value as HTML, for a place that takes blocks."""
    if files.is_plain(value):
        return files.render(value)
    if not isinstance(value, (dict, list)):
        return scalar(value, whole)
    if not value:
        return hint("none" if isinstance(value, list) else "no fields")
    if not depth and not size_limit.takes(state_tree.weight(value, size_limit.PAGE)):
        link = format_html(' <a href="{}">Show all of it</a>', whole) if whole else ""
        return format_html("{}{}", hint(f"{state_tree.measure(value)}, not shown here"), link)
    if depth >= DEPTH:
        return untrusted.render(json.dumps(value, ensure_ascii=False, indent=2), clamp=False, whole=whole, value=True)
    if isinstance(value, dict):
        return named(value, whole, depth)
    columns = columns_of(value)
    if columns:
        return table(value, columns, whole)
    items = format_html_join("", "<li>{}</li>", ((out(each, whole=whole, depth=depth + 1),) for each in value))
    return format_html('<ul class="values">{}</ul>', items)


def scalar(value: Any, whole: str = "") -> SafeString:
    """Render one text, number or word. An empty text is marked as empty, since a blank would be overlooked."""
    return state_tree.scalar(value, whole, clamp=False) if value != "" else hint("empty")


def hint(words: str) -> SafeString:
    """Render Holdpoint's own words in place of a value, in a way that no value can imitate."""
    return format_html('<span class="hint">{}</span>', words)


def named(value: Mapping[str, Any], whole: str, depth: int) -> SafeString:
    """Render an object, one line for each name."""
    rows = ((untrusted.exact(name, limit=80), out(each, whole=whole, depth=depth + 1)) for name, each in value.items())
    lines = format_html_join("", '<tr><th scope="row">{}</th><td>{}</td></tr>', rows)
    return format_html('<table class="values">{}</table>', lines)


def columns_of(items: Sequence[Any]) -> list[str]:
    """List the columns of a table of these items; [] where they are no objects with a few plain values each."""
    if len(items) < 2 or not all(isinstance(each, dict) and each and not files.is_plain(each) for each in items):
        return []
    if any(isinstance(inner, (dict, list)) for each in items for inner in each.values()):
        return []
    names = list(dict.fromkeys(name for each in items for name in each))
    return names if len(names) <= COLUMNS else []


def table(items: Sequence[Mapping[str, Any]], columns: Sequence[str], whole: str) -> SafeString:
    """Render objects of one kind as a table, one line each."""
    head = format_html_join("", '<th scope="col">{}</th>', ((untrusted.exact(name, limit=80),) for name in columns))
    none = hint("not there")
    lines = ([scalar(each[name], whole) if name in each else none for name in columns] for each in items)
    cells = ((format_html_join("", "<td>{}</td>", ((cell,) for cell in line)),) for line in lines)
    body = format_html_join("", "<tr>{}</tr>", cells)
    return format_html('<table class="values"><thead><tr>{}</tr></thead><tbody>{}</tbody></table>', head, body)
