"""Pages long containers, and finds the errors that belong to none of their parts. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from approvals.forms import names
from approvals.forms.build_context import Builder
from approvals.forms.nodes import RowWindow
from approvals.forms.places import FormPlace

SIZE = 40  # items, entries or members on one page


def window(builder: Builder, place: FormPlace, spots: Sequence[FormPlace]) -> RowWindow:
    """Return the page that is drawn: the one asked for, unless the first fault is on another."""
    total = len(spots)
    name = builder.sent.name(place.path, names.PAGE)
    pages = max(-(-total // SIZE), 1)
    asked = builder.sent.text(place.path, names.PAGE) or ""
    page = min(max(int(asked), 1), pages) if asked.isascii() and asked.isdigit() and len(asked) < 7 else 1
    if builder.faults.within(place.pointer):
        faulty = [at // SIZE + 1 for at, spot in enumerate(spots) if builder.faults.within(spot.pointer)]
        page = page if page in faulty or not faulty else faulty[0]
    first = (page - 1) * SIZE + 1
    return RowWindow(name=name, page=page, pages=pages, first=first, last=min(first + SIZE - 1, total), total=total)


def own_error(builder: Builder, place: FormPlace, inner: Sequence[str]) -> str:
    """Join the faults of a container itself, which lie in none of its parts."""
    if not builder.faults.within(place.pointer):
        return ""
    mine = [(at, word) for at, word in builder.faults.messages.items() if names.within(place.pointer, at)]
    return " ".join(word for at, word in mine if not any(names.within(word, at) for word in inner))
