"""The context of building one form, shared by all kinds of nodes: what was posted, faults, and what is drawn. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from approvals.schema import redact
from approvals.schema.walk import Schema
from checkpoints.values import artifacts, json_pointer

from . import names, shapes
from .nodes import MISSING, ClosedNode, FormNode, FormPlace, RowWindow
from .shapes import CONTAINERS, RAW, Shape
from .texts import summarise_value

DEEPEST = 64  # levels of a name that is read, deeper than any input: every place that contains it is kept
SIZE = 40  # items, entries or members on one page
DEPTH = 12  # levels that get inputs of their own; deeper is raw JSON
LEAF = "leaf"  # every kind that `kinds` has no builder for
CHOICE = "choice"  # a union, and a container that may be null
Build = Callable[["Builder", Shape, Any, FormPlace], FormNode]


def normalise_line_breaks(text: str) -> str:
    """Return the text with every line break as a line feed."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def normalise_text(text: str) -> str:
    """Return a text as an input carries it: one kind of line break, no U+0000."""
    return normalise_line_breaks(text).replace("\0", "\ufffd")


def ancestors(path: str) -> Iterable[str]:
    """Yield a path and every place that contains it."""
    while path:
        yield path
        path = path.rpartition("/")[0]
    yield ""


@dataclass(frozen=True)
class SentFields:
    """The posted texts whose name begins with `prefix`; empty where nothing was posted yet."""

    prefix: str
    texts: Mapping[str, str] = field(default_factory=dict)
    places: frozenset[str] = frozenset()

    @classmethod
    def from_posted(cls, posted: Mapping[str, str], prefix: str) -> SentFields:
        """Pick the texts of this prefix from a posted form."""
        mine: dict[str, str] = {}
        places: set[str] = set()
        for name, text in posted.items():
            belongs_to, _, path = names.split(name)
            if belongs_to == prefix and path.count("/") <= DEEPEST:
                mine[name] = text
                places.update(ancestors(path))
        return cls(prefix, mine, frozenset(places))

    def name(self, path: str, mark: str = "") -> str:
        """Return the name of an input."""
        return self.prefix + mark + path

    def text(self, path: str, mark: str = "") -> str | None:
        """Return what was posted there; None where nothing was."""
        return self.texts.get(self.name(path, mark))

    def speaks_of(self, path: str) -> bool:
        """Tell whether anything was posted at this place or within it."""
        return path in self.places


class FieldFaults:
    """Messages by JSON Pointer, indexed by the places that contain them."""

    def __init__(self, messages: Mapping[str, str]) -> None:
        self.messages = dict(messages)
        self.places = {place for pointer in messages for place in ancestors(pointer)}

    def within(self, pointer: str) -> list[str]:
        """List every message at a place or within it."""
        if pointer not in self.places:
            return []
        return [word for place, word in self.messages.items() if names.within(pointer, place)]

    def moved(self, instead: Mapping[str, str]) -> FieldFaults:
        """Return the faults with some moved: `instead` maps place -> new place, or "" to drop one."""
        kept = {place: word for place, word in self.messages.items() if place not in instead}
        for place, word in self.messages.items():
            if instead.get(place):
                kept[instead[place]] = " ".join(filter(None, [kept.get(instead[place]), word]))
        return FieldFaults(kept)


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
            "unit": place.unit if what.kind == "decimal" else "",
        }

    def window(self, spots: Sequence[FormPlace], place: FormPlace) -> RowWindow:
        """Return the page of a container that is drawn: the one asked for, unless the first fault is on another."""
        total = len(spots)
        pages = max(-(-total // SIZE), 1)
        asked = self.sent.text(place.path, names.PAGE) or ""
        page = min(max(int(asked), 1), pages) if asked.isascii() and asked.isdigit() and len(asked) < 7 else 1
        if self.faults.within(place.pointer):
            faulty = [at // SIZE + 1 for at, spot in enumerate(spots) if self.faults.within(spot.pointer)]
            page = page if page in faulty or not faulty else faulty[0]
        first = (page - 1) * SIZE + 1
        last = min(first + SIZE - 1, total)
        name = self.sent.name(place.path, names.PAGE)
        return RowWindow(name=name, page=page, pages=pages, first=first, last=last, total=total)

    def own_error(self, place: FormPlace, inner: Sequence[str]) -> str:
        """Join the faults of a container itself, which lie in none of its parts."""
        if not self.faults.within(place.pointer):
            return ""
        within = [(at, word) for at, word in self.faults.messages.items() if names.within(place.pointer, at)]
        return " ".join(word for at, word in within if not any(names.within(part, at) for part in inner))
