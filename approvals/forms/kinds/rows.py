"""Items of lists and of objects of free keys, which can be added, removed and moved. Pure.

An item keeps its id wherever it is moved: its number (or key) in the value as it was rendered, or `~new1` for a new
one. The order's mark holds the current ids, so an item that it does not name was removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from approvals.forms import names
from approvals.forms.build_context import Builder
from approvals.forms.hints import list_hints
from approvals.forms.nodes import MISSING, ItemRow, RowWindow
from approvals.forms.places import FormPlace
from approvals.forms.shapes import Shape
from approvals.forms.summaries import summarise_value
from approvals.schema.walk import Schema
from checkpoints.values.patch import find_rising_run

from . import windows


@dataclass(frozen=True, kw_only=True)
class EditedItems:
    """The items of one list or object: as they were (`old`, `rendered`), and as they are now (`ids` and the rest)."""

    builder: Builder
    place: FormPlace
    old: Sequence[str]
    rendered: dict[str, Any]  # id -> value as it was rendered
    ids: Sequence[str]
    spots: Sequence[FormPlace]
    parts: Sequence[Schema]
    keys: dict[str, str] = field(default_factory=dict)  # id -> key, of an object

    @cached_property
    def window(self) -> RowWindow:
        return windows.window(self.builder, self.place, self.spots)

    @cached_property
    def expanded(self) -> bool:
        return self.builder.draws(self.place)

    @cached_property
    def rows(self) -> list[ItemRow]:
        """List the rows that are drawn, are new, or were typed into."""
        found = []
        for at, (word, spot) in enumerate(zip(self.ids, self.spots, strict=True)):
            shown = self.expanded and self.window.first <= at + 1 <= self.window.last
            if shown or names.is_new(word) or self.builder.sent.speaks_of(spot.path):
                found.append(self._row(at, word, replace(spot, shown=shown)))
        return found

    def _row(self, at: int, item_id: str, spot: FormPlace) -> ItemRow:
        node = self.builder.node(self.parts[at], self.rendered.get(item_id, MISSING), spot)
        named = bool(self.keys) and names.is_new(item_id)
        return ItemRow(
            id=item_id, node=node, number=at + 1, added=names.is_new(item_id),
            moved=not names.is_new(item_id) and item_id not in self.still, first=at == 0, last=at == len(self.ids) - 1,
            key_name=self.builder.sent.name(spot.path, names.KEY) if named else "", key=self.keys.get(item_id, ""),
        )  # fmt: skip

    @cached_property
    def still(self) -> set[str]:
        """Return the ids that kept their order among each other; all other ids were moved."""
        at = {word: number for number, word in enumerate(self.old)}
        return {self.old[number] for number in find_rising_run([at[number] for number in self.ids if number in at])}

    @cached_property
    def values(self) -> list[Any]:
        """List the current values; MISSING for a new item without one."""
        built = {row.id: row.node.value for row in self.rows}
        return [built[number] if number in built else self.rendered[number] for number in self.ids]

    @cached_property
    def same(self) -> bool:
        return list(self.ids) == list(self.old) and not any(row.node.changed for row in self.rows)

    def common(self, what: Shape, value: Any) -> dict[str, Any]:
        """Return the constructor arguments that both kinds of nodes share."""
        rest = [row for row in self.rows if not row.node.place.shown]
        veil = self.builder.veil(what.schema, self.place)
        standing = set(self.ids)
        name = self.builder.sent.name
        return {
            **self.builder.common(what, value, self.place),
            "rows": [row for row in self.rows if row.node.place.shown],
            "rest": rest,
            "removed": [
                (
                    name(f"{self.place.path}/{word}"),
                    summarise_value(veil.within(word).masked(self.rendered.get(word, MISSING))),
                )
                for word in self.old
                if word not in standing
            ],
            "order_name": name(self.place.path, names.ORDER),
            "order": names.order_of(list(self.ids)),
            "rendered": names.order_of(list(self.old)),
            "window": self.window,
            "carried": [pair for row in rest for pair in _typed(row)] if self.expanded else (),
            "hints": list_hints(what),
            "error": windows.own_error(self.builder, self.place, [spot.pointer for spot in self.spots])
            or too_many(self.builder, self.place),
        }


MOST_NEW = 500  # items that may be added to one list at once


def ids_of(builder: Builder, place: FormPlace, old: Sequence[str]) -> list[str]:
    """List the items' current ids: those in the order's mark that are known or new, at most MOST_NEW new ones."""
    order = builder.sent.text(place.path, names.ORDER)
    if order is None:
        return list(old)
    known = set(old)
    new = [word for word in names.ids_of(order) if names.is_new(word) and word not in known]
    dropped = set(new[MOST_NEW:])
    return [word for word in names.ids_of(order) if word in known or (names.is_new(word) and word not in dropped)]


def too_many(builder: Builder, place: FormPlace) -> str:
    """Say what is wrong where more than MOST_NEW items were added; "" otherwise."""
    order = builder.sent.text(place.path, names.ORDER) or ""
    count = sum(names.is_new(word) for word in names.ids_of(order))
    words = f"{count:,} were added; add at most {MOST_NEW:,} at once."
    return words if count > MOST_NEW else ""


def _typed(row: ItemRow) -> list[tuple[str, str]]:
    return [*([(row.key_name, row.key)] if row.key_name else []), *row.node.touched()]
