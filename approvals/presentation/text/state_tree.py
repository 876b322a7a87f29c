"""Renders a saved state as a tree of <details>: it folds without script, prints open, and stays small.

Not by a recursive template, since a state may be 128 levels deep and 16 MB large. Parts that are not drawn are counted
and linked: a closed branch that is too large for the page is fetched when it is opened.

Also here: a value that a reader must see whole, such as a pinned one, spelled out: a list as its values, objects of one
kind as a table, an object by its names. Nothing is folded or clamped as long as the page has room, and only very deep
parts are JSON. `whole` is the address that shows all of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any
from urllib.parse import quote

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from approvals.english import count_of
from checkpoints.values import json_pointer

from . import files, lookalikes, size_limit, untrusted
from .untrusted import icon

NODES = 1_500  # drawn in one tree
CHILDREN = 60  # drawn of one list or object
DEPTH = 24
FIELDS = 200  # drawn of the state itself
TABLE_DEPTH = 3  # of what is spelled out; below it the rest is JSON
COLUMNS = 6
CLOSED = 12_000  # characters of the page that a closed branch may take
PAGE = 120_000  # characters that all closed branches of a page may take


class StateTree:
    """Draws one state within a budget of nodes. `lazy`: large closed branches are fetched when opened."""

    def __init__(
        self, *, notes: Mapping[str, str], open: set[str], whole: str, files_at: str = "", lazy: bool = False
    ) -> None:
        self.notes, self.open, self.whole, self.files_at = notes, open, whole, files_at
        self.left, self.room = NODES, PAGE
        self.lazy = lazy and bool(whole)

    def at(self, pointer: str) -> str:
        return f"{self.whole}?at={quote(pointer)}" if self.whole else ""

    def node(self, name: str, value: Any, pointer: str, depth: int, *, bare: bool = False) -> SafeString:
        self.left -= 1
        if isinstance(value, (dict, list)) and value and not files.is_plain(value):
            return self.branch(name, value, pointer, depth)
        leaf = f'<span class="k">{untrusted.exact(name, limit=80)}</span>{self.leaf(value, pointer)}'
        return SafeString(f'<div class="leaf">{leaf}</div>' if bare else leaf)

    def branch(self, name: str, value: dict[str, Any] | list[Any], pointer: str, depth: int) -> SafeString:
        note = self.notes.get(name, "") if depth == 0 else ""
        head = format_html(
            '{}<span class="k">{}</span><span class="n">{}</span>',
            icon("right"), untrusted.exact(name, limit=80), ", ".join(filter(None, [measure(value), note])),
        )  # fmt: skip
        opened = " open" if depth == 0 and name in self.open else ""
        if self.lazy and not opened and not self.fits(value, depth):
            return self.unfetched(head, pointer)
        return format_html(
            "<details{}><summary>{}</summary>{}</details>", opened, head, self.inside(value, pointer, depth)
        )

    def fits(self, value: Any, depth: int) -> bool:
        """Tell whether a closed branch is drawn at once; if so, take its size from the page's room."""
        if depth >= DEPTH or self.left <= 0:
            return False
        most = min(CLOSED, self.room)
        cost = weight(value, most)
        self.room -= cost if cost <= most else 0
        return cost <= most

    def unfetched(self, head: SafeString, pointer: str) -> SafeString:
        """Render a branch that is fetched when it is opened; without script, a link leads to the same value."""
        return format_html(
            '<details hx-get="{}&amp;tree=1" hx-trigger="toggle once" hx-target="find ul" hx-swap="outerHTML">'
            '<summary>{}</summary><ul><li class="leaf"><a href="{}">Show it</a></li></ul></details>',
            self.at(pointer), head, self.at(pointer),
        )  # fmt: skip

    def inside(self, value: dict[str, Any] | list[Any], pointer: str, depth: int) -> SafeString:
        pairs = list(value.items()) if isinstance(value, dict) else [(str(at), item) for at, item in enumerate(value)]
        fit = 0 if depth >= DEPTH else min(CHILDREN, max(self.left, 0))
        # Show the end of a long list too, since it is what happened last.
        drawn = pairs if len(pairs) <= fit else pairs[: fit * 2 // 3] + pairs[len(pairs) - fit // 3 :]
        items: list[str] = []
        for key, item in drawn:
            inner = self.node(key, item, json_pointer.join(pointer, key), depth + 1)
            leaf = files.is_plain(item) or not (isinstance(item, (dict, list)) and item)
            items.append(f'<li class="leaf">{inner}</li>' if leaf else f"<li>{inner}</li>")
        if len(drawn) < len(pairs):
            items.insert(fit * 2 // 3, self.missing(len(pairs) - len(drawn), pointer))
        return SafeString(f"<ul>{''.join(items)}</ul>")

    def missing(self, count: int, pointer: str) -> SafeString:
        link = format_html(' <a href="{}">Show all</a>', self.at(pointer)) if self.whole else ""
        return format_html('<li class="leaf"><span class="n">{} more not drawn here{}</span></li>', f"{count:,}", link)

    def leaf(self, value: Any, pointer: str) -> SafeString:
        if files.is_plain(value):
            return format_html('<span class="v">{}</span>', files.render(value, artifacts=self.files_at, folded=True))
        kind = "string" if isinstance(value, str) else "other"
        return SafeString(f'<span class="v" data-type="{kind}">{scalar(value, self.at(pointer))}</span>')


def weight(value: Any, most: int) -> int:
    """Estimate how many characters a branch takes on the page; stop counting above `most`."""
    total, rest = 0, [value]
    while rest and total <= most:
        node = rest.pop()
        if isinstance(node, str):
            total += len(node)
        elif isinstance(node, (dict, list)):
            total += 100 * len(node)
            if total <= most:
                rest.extend(node.values() if isinstance(node, dict) else node)
    return total


def scalar(value: Any, whole: str = "", *, clamp: bool = True) -> SafeString:
    """Render one value as text: numbers and booleans as JSON writes them, strings without quotes."""
    if isinstance(value, str) and lookalikes.is_exact(value) and lookalikes.in_exact(value):
        return untrusted.exact(value)
    if isinstance(value, str):
        return untrusted.render(value, whole=whole, clamp=clamp, value=True)
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 14_000:
        return format_html("{}", hex(value))  # past Python's limit for decimal digits
    words = {True: "true", False: "false", None: "null"}
    text = words[value] if value is None or isinstance(value, bool) else repr(value)
    return format_html("{}", {"{}": "{ }", "[]": "[ ]"}.get(text, text))


def measure(value: dict[str, Any] | list[Any]) -> str:
    """Write the size of an object or list: `5 fields`, `list of 23`."""
    if isinstance(value, list):
        return f"list of {len(value):,}"
    return count_of(len(value), "field")


def branch(value: Any, *, pointer: str, whole: str, files_at: str = "") -> SafeString:
    """Render the inside of the list or object at `pointer`, for a branch that was opened; `whole` shows all of it."""
    if not isinstance(value, (dict, list)):
        raise LookupError(pointer)
    return StateTree(notes={}, open=set(), whole=whole, files_at=files_at, lazy=True).inside(value, pointer, 1)


def render(
    state: Any,
    *,
    notes: Mapping[str, str] | None = None,
    open: Iterable[str] | None = None,
    whole: str = "",
    base: str = "",
    artifacts: str = "",
    lazy: bool = False,
) -> SafeString:
    """Render `state` as a tree, one top-level node a field. `base` is its place in what `whole` shows.

    See partials/tree.html for the rest; a template gives "" for what its context lacks.
    """
    if not isinstance(state, Mapping):
        state = dict(enumerate(state)) if isinstance(state, list) else {"value": state}
    tree = StateTree(notes=notes or {}, open=set(open or ()), whole=whole or "", files_at=artifacts or "", lazy=lazy)
    drawn, more = list(islice(state.items(), FIELDS)), len(state) - FIELDS
    nodes = [tree.node(str(name), value, json_pointer.join(base, str(name)), 0, bare=True) for name, value in drawn]
    rest = format_html("<ul>{}</ul>", tree.missing(more, base)) if more > 0 else ""
    return SafeString(f"{''.join(nodes)}{rest}")


def spell_out(value: Any, *, whole: str = "", depth: int = 0) -> SafeString:
    """Render any JSON value as HTML, for a place that takes blocks."""
    if files.is_plain(value):
        return files.render(value)
    if not isinstance(value, (dict, list)):
        return _cell(value, whole)
    if not value:
        return hint("none" if isinstance(value, list) else "no fields")
    if not depth and not size_limit.takes(weight(value, size_limit.PAGE)):
        link = format_html(' <a href="{}">Show all of it</a>', whole) if whole else ""
        return format_html("{}{}", hint(f"{measure(value)}, not shown here"), link)
    if depth >= TABLE_DEPTH:
        return untrusted.render(json.dumps(value, ensure_ascii=False, indent=2), clamp=False, whole=whole, value=True)
    if isinstance(value, dict):
        return named(value, whole, depth)
    columns = columns_of(value)
    if columns:
        return table(value, columns, whole)
    items = format_html_join("", "<li>{}</li>", ((spell_out(each, whole=whole, depth=depth + 1),) for each in value))
    return format_html('<ul class="values">{}</ul>', items)


def _cell(value: Any, whole: str = "") -> SafeString:
    """Render one text, number or word. An empty text is marked as empty, since a blank would be overlooked."""
    return scalar(value, whole, clamp=False) if value != "" else hint("empty")


def hint(words: str) -> SafeString:
    """Render Holdpoint's own words in place of a value, in a way that no value can imitate."""
    return format_html('<span class="hint">{}</span>', words)


def named(value: Mapping[str, Any], whole: str, depth: int) -> SafeString:
    """Render an object, one line for each name."""
    rows = (
        (untrusted.exact(name, limit=80), spell_out(each, whole=whole, depth=depth + 1)) for name, each in value.items()
    )
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
    lines = ([_cell(each[name], whole) if name in each else none for name in columns] for each in items)
    cells = ((format_html_join("", "<td>{}</td>", ((cell,) for cell in line)),) for line in lines)
    body = format_html_join("", "<tr>{}</tr>", cells)
    return format_html('<table class="values"><thead><tr>{}</tr></thead><tbody>{}</tbody></table>', head, body)
