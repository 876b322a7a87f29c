"""Builds objects, lists, tuples and objects of free keys, whose items can be added, removed and moved. Pure.

An item keeps its id wherever it is moved: its number (or key) in the value as it was rendered, or `~new1` for a new
one. The order's mark holds the current ids, so an item that it does not name was removed. An existing key keeps its
name; a new entry has an input for its key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.utils.functional import cached_property

from approvals.schema.walk import Schema, label_of, resolve_part
from checkpoints.values import json_pointer
from checkpoints.values.patch import find_rising_run

from . import names
from .builder import Builder
from .leaves import EMPTY
from .nodes import MISSING, FormGroup, FormNode, FormPlace, ItemRow, ItemRows, RowWindow, unit_in
from .shapes import Shape, item_schema, list_hints, member_schemas
from .texts import summarise_value

MOST_NEW = 500  # items that may be added to one list at once
UNNAMED = "Name this entry."
TWICE = "This name is there already."


def build_group(builder: Builder, what: Shape, value: Any, place: FormPlace, *, switched: bool = False) -> FormGroup:
    """Build the object's members as nodes; those with pinned places come first.

    `switched`: another branch of a union was chosen, so members that only the old one had are dropped.
    """
    held: dict[str, Any] = value if isinstance(value, dict) else {}
    parts = member_schemas(what) if "properties" in what.schema else {}
    if not switched:
        free = item_schema(what)
        parts |= {name: free for name in held if name not in parts}
    spots = {name: place.into(name) for name in parts}
    pinned = {n for n, at in spots.items() if any(json_pointer.overlaps(pin, at.pointer) for pin in builder.pinned)}
    order = sorted(parts, key=lambda name: name not in pinned)
    window = builder.window([spots[name] for name in order], place)
    drawn = builder.draws(place)
    needed = what.schema.get("required", ())
    inner = []
    for at, name in enumerate(order):
        shown = drawn and window.first <= at + 1 <= window.last
        spot = place.into(
            name, required=name in needed, must=False, shown=shown, unit=unit_in(held),
            was=None if switched and name not in held else spots[name].was,
            **called(parts[name], name, quoted=place.quoted),
        )  # fmt: skip
        if shown or builder.sent.speaks_of(spot.path):
            inner.append(builder.node(parts[name], held.get(name, MISSING), spot))
    if isinstance(value, dict) and not switched:
        changed = {_token(node): node.value for node in inner if node.changed and not node.implied}
        now: Any = {**value, **changed} if changed else value  # the rendered object itself where no member changed
    else:
        lines = [node for node in inner if node.value is not MISSING]
        filled = place.must or switched or not all(node.implied for node in lines)
        now = {_token(node): node.value for node in lines} if filled else value
    error = builder.own_error(place, [node.pointer for node in inner])
    if error and now is MISSING and any(map(_lacked, inner)):
        inner, error = [_show_error(node, error) for node in inner], ""
    return FormGroup(
        **builder.common(what, value, place),
        value=now,
        members=[node for node in inner if node.place.shown],
        rest=(rest := [node for node in inner if not node.place.shown]),
        window=window,
        carried=[pair for node in rest for pair in node.touched()] if drawn else (),
        error=error,
    )


def called(part: Schema, name: str, *, quoted: bool) -> dict[str, str]:
    """Return a member's label from the schema, or its real name where somebody else wrote the schema's words."""
    if not quoted:
        return {"label": label_of(part, name)}
    title = part.get("title")
    return {"label": name, "title": title if isinstance(title, str) and title != name else ""}


def _lacked(node: FormNode) -> bool:
    return node.place.required and node.value is MISSING


def _show_error(node: FormNode, error: str) -> FormNode:
    """Show the error of an absent object beside its required fields, as filling in any of them creates it."""
    if not _lacked(node):
        return node
    if isinstance(node, FormGroup) and any(map(_lacked, node.children)):
        return replace(node, members=[_show_error(member, error) for member in node.members])
    return replace(node, error=error)


def _token(node: FormNode) -> str:
    return names.decoded(node.path.rpartition("/")[2])


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
        return self.builder.window(self.spots, self.place)

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
            "carried": [pair for row in rest for pair in row.touched()] if self.expanded else (),
            "hints": list_hints(what),
            "error": self.builder.own_error(self.place, [spot.pointer for spot in self.spots])
            or too_many(self.builder, self.place),
        }


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
    return f"{count:,} were added; add at most {MOST_NEW:,} at once." if count > MOST_NEW else ""


def build_list(builder: Builder, what: Shape, value: Any, place: FormPlace) -> ItemRows:
    """Build the list with its items in their present order; a tuple's items are neither added nor moved."""
    held: list[Any] = value if isinstance(value, list) else []
    fixed: list[Schema] = what.schema["prefixItems"] if what.kind == "tuple" else []
    old = [str(at) for at in range(len(held))]
    ids = [str(at) for at in range(len(fixed))] if fixed else ids_of(builder, place, old)
    known = set(old)  # a state may hold a hundred thousand items
    part = item_schema(what)
    noun = label_of(resolve_part(part, builder.root), "item") if part and not place.quoted else "Item"
    found = EditedItems(
        builder=builder,
        place=place,
        old=old or ids if fixed else old,
        rendered=dict(zip(old, held, strict=True)) | (dict.fromkeys(ids, MISSING) if not held and fixed else {}),
        ids=ids,
        spots=[_item_spot(place, word, at, noun, known=word in known) for at, word in enumerate(ids)],
        parts=fixed or [part] * len(ids),
    )
    empty = [(spot.pointer, EMPTY) for spot, item in zip(found.spots, found.values, strict=True) if item is MISSING]
    if many := "" if fixed else too_many(builder, place):
        empty.append((place.pointer, many))
    untold = value is MISSING and (not ids or (bool(fixed) and found.same))
    return ItemRows(
        **found.common(what, value),
        value=value if found.same or untold else [value for value in found.values if value is not MISSING],
        grows=not fixed,
        moves=not fixed and what.schema.get("uniqueItems") is not True,
        noun=noun,
        extra=() if untold else empty,
    )


def _item_spot(place: FormPlace, item_id: str, at: int, noun: str, *, known: bool) -> FormPlace:
    was = f"{place.was}/{item_id}" if known and place.was is not None else None
    return place.into(
        item_id,
        path=f"{place.path}/{item_id}",
        pointer=f"{place.pointer}/{at}",
        label=f"{noun} {at + 1}",
        must=True,
        was=was,
    )


def build_map(builder: Builder, what: Shape, value: Any, place: FormPlace) -> ItemRows:
    """Build the object's entries, in the order of their keys as they were saved."""
    held: dict[str, Any] = value if isinstance(value, dict) else {}
    known = {names.encoded(key): key for key in held}
    ids = ids_of(builder, place, list(known))
    typed = {number: builder.sent.text(f"{place.path}/{number}", names.KEY) or "" for number in ids}
    keys = {number: known.get(number, text) for number, text in typed.items()}
    spots = [
        place.into(keys[at], label=keys[at], must=True)
        if at in known
        else place.into(keys[at] or at, path=f"{place.path}/{at}", label=keys[at] or "New entry", must=True, was=None)
        for at in ids
    ]
    found = EditedItems(
        builder=builder,
        place=place,
        old=list(known),
        rendered={word: held[key] for word, key in known.items()},
        ids=ids,
        spots=spots,
        parts=[item_schema(what)] * len(ids),
        keys=keys,
    )
    faults = list(_faults(found))
    if many := too_many(builder, place):
        faults.append((place.pointer, many))
    bad = dict(faults)
    common = found.common(what, value)
    rows = [replace(row, key_fault=bad.get(row.node.pointer, "")) if row.key_name else row for row in common["rows"]]
    lines = [
        (keys[word], entry)
        for word, spot, entry in zip(ids, found.spots, found.values, strict=True)
        if entry is not MISSING and not (names.is_new(word) and spot.pointer in bad)
    ]
    return ItemRows(
        **{**common, "rows": rows},
        value=value if found.same or (value is MISSING and not ids) else dict(lines),
        moves=False,
        noun="Entry",
        extra=faults,
    )


def _faults(edited: EditedItems) -> Iterator[tuple[str, str]]:
    taken = {key for word, key in edited.keys.items() if not names.is_new(word)}
    for word, spot, entry in zip(edited.ids, edited.spots, edited.values, strict=True):
        key = edited.keys[word]
        if names.is_new(word) and (not key or key in taken):
            yield spot.pointer, TWICE if key else UNNAMED
        elif entry is MISSING:
            yield spot.pointer, EMPTY
        taken.add(key)
