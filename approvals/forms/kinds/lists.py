"""Builds a list or a tuple. Pure."""

from __future__ import annotations

from typing import Any

from approvals.forms.build_context import Builder
from approvals.forms.nodes import MISSING, ItemRows
from approvals.forms.places import FormPlace
from approvals.forms.shapes import Shape, item_schema
from approvals.schema.walk import Schema, label_of, resolve_part

from .leaves import EMPTY
from .rows import EditedItems, ids_of, too_many


def build(builder: Builder, what: Shape, value: Any, place: FormPlace) -> ItemRows:
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
        spots=[_spot(place, word, at, noun, known=word in known) for at, word in enumerate(ids)],
        parts=fixed or [part] * len(ids),
    )
    empty = [
        (spot.pointer, str(EMPTY)) for spot, item in zip(found.spots, found.values, strict=True) if item is MISSING
    ]
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


def _spot(place: FormPlace, item_id: str, at: int, noun: str, *, known: bool) -> FormPlace:
    was = f"{place.was}/{item_id}" if known and place.was is not None else None
    return place.into(
        item_id,
        path=f"{place.path}/{item_id}",
        pointer=f"{place.pointer}/{at}",
        label=f"{noun} {at + 1}",
        must=True,
        was=was,
    )
