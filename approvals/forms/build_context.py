"""The context of building one form, shared by the modules of the kinds of nodes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from approvals.schema import redact
from approvals.schema.walk import Schema
from checkpoints.values import artifacts, json_pointer

from . import shapes
from .nodes import MISSING, ClosedNode, FormNode
from .places import FormPlace
from .sent import FieldFaults, SentFields
from .shapes import CONTAINERS, RAW, Shape
from .summaries import summarise_value

DEPTH = 12  # levels that get inputs of their own; deeper is raw JSON
LEAF = "leaf"  # every kind that `kinds` has no builder for
CHOICE = "choice"  # a union, and a container that may be null
Build = Callable[["Builder", Shape, Any, FormPlace], FormNode]


@dataclass(kw_only=True)
class Builder:
    """The context of building one form, passed to the builder of every kind of node."""

    root: Schema
    sent: SentFields
    faults: FieldFaults
    pinned: Sequence[str]
    missing: Sequence[str]
    remaining: int  # inputs that may still be drawn
    kinds: Mapping[str, Build]
    over: redact.Redaction | None = None  # the whole's, where it hides more than the schema does

    def node(self, part: Schema, value: Any, place: FormPlace) -> FormNode:
        """Build the node of one place."""
        what = self.shape(part, value, place)
        if not place.depth and value is not None:  # a form cannot remove the whole value
            what = replace(what, nullable=False)
        if what.kind in CONTAINERS and not (self.draws(place) or self.sent.speaks_of(place.path)):
            return self.closed(what, value, place)
        if what.kind in CONTAINERS and (what.nullable or what.kind == "union"):
            return self.kinds[CHOICE](self, what, value, place)
        return self.plain(what, value, place)

    def plain(self, what: Shape, value: Any, place: FormPlace) -> FormNode:
        """Build the node of one place whose shape is known."""
        kind = what.kind if what.kind in self.kinds else LEAF
        if kind == LEAF and place.shown:
            self.remaining -= 1
        if what.kind == "union":  # a union nested deeper than is supported
            what = replace(RAW, schema=what.schema)
        return self.kinds[kind](self, what, value, place)

    def shape(self, part: Schema, value: Any, place: FormPlace) -> Shape:
        """Return the shape of a place, or raw JSON where a node of that shape could not show its value."""
        what = shapes.shape(part, self.root)
        raw = Shape(kind="json", schema=what.schema, nullable=what.nullable)
        if artifacts.is_reference(value):
            return replace(raw, kind="file")
        if what.kind != "secret" and self.veil(part, place).secret:  # of another kind than text: placeholders hide it
            return replace(raw, schema={**what.schema, "writeOnly": True})
        if place.depth > DEPTH and what.kind in CONTAINERS:
            return raw
        empty = value is MISSING or (value is None and what.nullable)
        if (empty and what.kind != "json") or what.kind == "union" or shapes.fits(what, value):
            return what
        return raw

    def draws(self, place: FormPlace) -> bool:
        """Tell whether a container is drawn. One in which something was typed is built anyway."""
        asked = self.sent.text(place.path, "!open") is not None or bool(self.faults.within(place.pointer))
        return place.shown and (self.remaining > 0 or asked or place.depth == 0 or self.sent.speaks_of(place.path))

    def closed(self, what: Shape, value: Any, place: FormPlace) -> ClosedNode:
        words = summarise_value(self.veil(what.schema, place).masked(value))
        return ClosedNode(**self.common(what, value, place, "!open"), value=value, summary=words)

    def veil(self, part: Schema, place: FormPlace) -> redact.Redaction:
        """Return the secrets at a place, which a part of the schema describes."""
        return redact.veil_marks(part, self.root) if self.over is None else self.over.at(place.pointer)

    def common(self, what: Shape, value: Any, place: FormPlace, mark: str = "") -> dict[str, Any]:
        """Return the constructor arguments that all kinds of nodes share."""
        return {
            "place": place,
            "name": self.sent.name(place.path, mark),
            "was": value,
            "pinned": any(json_pointer.covers_place(word, place.pointer) for word in self.pinned),
            "missing": place.pointer in self.missing,
            "help": str(what.schema.get("description", "")),
        }

    def holds_pinned(self, pointer: str) -> bool:
        """Tell whether a pinned place is this one, lies in it, or contains it."""
        return any(json_pointer.overlaps(word, pointer) for word in self.pinned)
