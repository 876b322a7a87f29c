"""Builds an object of free keys. An existing key keeps its name; a new entry has an input for its key. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from approvals.forms import names
from approvals.forms.build_context import Builder
from approvals.forms.nodes import MISSING, ItemRows
from approvals.forms.places import FormPlace
from approvals.forms.shapes import Shape, item_schema

from .leaves import EMPTY
from .rows import EditedItems, ids_of, too_many

UNNAMED = "Name this entry."
TWICE = "This name is there already."


def build(builder: Builder, what: Shape, value: Any, place: FormPlace) -> ItemRows:
    """Build the object's entries, in the order of their keys as they were saved."""
    held: dict[str, Any] = value if isinstance(value, dict) else {}
    known = {names.encoded(key): key for key in held}
    ids = ids_of(builder, place, list(known))
    keys = {number: known[number] if number in known else _typed_key(builder, place, number) for number in ids}
    found = EditedItems(
        builder=builder,
        place=place,
        old=list(known),
        rendered={word: held[key] for word, key in known.items()},
        ids=ids,
        spots=[_spot(place, number, keys[number], known=number in known) for number in ids],
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


def _typed_key(builder: Builder, place: FormPlace, item_id: str) -> str:
    return builder.sent.text(f"{place.path}/{item_id}", names.KEY) or ""


def _spot(place: FormPlace, item_id: str, key: str, *, known: bool) -> FormPlace:
    if known:
        return place.into(key, label=key, must=True)
    return place.into(key or item_id, path=f"{place.path}/{item_id}", label=key or "New entry", must=True, was=None)


def _faults(edited: EditedItems) -> Iterator[tuple[str, str]]:
    taken = {key for word, key in edited.keys.items() if not names.is_new(word)}
    for word, spot, entry in zip(edited.ids, edited.spots, edited.values, strict=True):
        key = edited.keys[word]
        if names.is_new(word) and (not key or key in taken):
            yield spot.pointer, str(TWICE if key else UNNAMED)
        elif entry is MISSING:
            yield spot.pointer, str(EMPTY)
        taken.add(key)
