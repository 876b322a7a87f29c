"""The nodes of a form, and their places: in the form's names, in the value as typed, and in the value as rendered.

Every node holds what to show and the value that it gives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2s
from typing import Any

from checkpoints.values import json_pointer

from . import names

CURRENCY = re.compile("[A-Z]{3}")
EDITABLE = 60_000  # characters
NARROW = 24  # characters that the narrowest column shows
MISSING: Any = object()  # the value of a place that an object does not have


@dataclass(frozen=True, kw_only=True)
class FormPlace:
    """The place of one node."""

    path: str = ""  # in the form's names: an item keeps its number wherever it is moved
    pointer: str = ""  # in the value as it is typed
    was: str | None = ""  # in the value as it was rendered; None for what is new
    label: str = "Value"
    required: bool = True
    must: bool = True  # it cannot be left out: the whole, an item of a list, a chosen branch
    depth: int = 0
    shown: bool = True
    unit: str = ""  # the currency beside an amount
    quoted: bool = False  # somebody else wrote the schema's words, so `label` is the real name
    title: str = ""  # the name that the schema gives it

    def into(self, token: str, **changes: Any) -> FormPlace:
        """Return a place further in, at the name or number `token`."""
        step = names.encoded(token)
        was = None if self.was is None else json_pointer.join(self.was, token)
        given: dict[str, Any] = {
            "path": f"{self.path}/{step}",
            "pointer": json_pointer.join(self.pointer, token),
            "was": was,
            "depth": self.depth + 1,
            "shown": self.shown,
            "quoted": self.quoted,
        }
        return FormPlace(**{**given, **changes})


def unit_in(value: Any) -> str:
    """Return the currency code that an object holds beside its amounts; "" where there is none."""
    unit = value.get("currency") if isinstance(value, dict) else None
    return unit if isinstance(unit, str) and CURRENCY.fullmatch(unit) else ""


@dataclass(frozen=True, kw_only=True)
class FieldOption:
    """One option of a choice. `value` is what the form posts; `gives`: the JSON value, or the name of a shape."""

    value: str
    label: str
    gives: Any = None


@dataclass(frozen=True, kw_only=True)
class FormNode:
    """The base of all kinds of nodes. `value` is MISSING where the containing object has no such name."""

    place: FormPlace
    name: str  # of the input
    value: Any
    was: Any = MISSING  # the value as it was rendered
    pinned: bool = False
    missing: bool = False  # a reviewer has to fill it in or change it
    error: str = ""
    help: str = ""
    unit: str = ""  # the currency beside an amount
    hints: Sequence[str] = ()
    implied: bool = False  # its value follows from the schema; nobody typed it
    nullable: bool = False
    choices: Sequence[FieldOption] = ()
    kind = ""

    @property
    def label(self) -> str:
        return self.place.label

    @property
    def pointer(self) -> str:
        return self.place.pointer

    @property
    def path(self) -> str:
        return self.place.path

    @property
    def id(self) -> str:
        """Return its id on the page: names hold characters that an id may not."""
        plain = "".join(char if char.isalnum() and char.isascii() else "-" for char in self.name)
        return f"f-{plain[:60]}-{blake2s(self.name.encode(), digest_size=3).hexdigest()}"

    @property
    def changed(self) -> bool:
        return self.value is not self.was

    @property
    def children(self) -> Sequence[FormNode]:
        return ()

    @property
    def wide(self) -> bool:
        return True

    def touched(self) -> Iterator[tuple[str, str]]:
        """Yield the names and texts that differ from what was rendered."""
        for child in self.children:
            yield from child.touched()

    def faults(self) -> Iterator[tuple[str, str]]:
        """Yield (pointer, message) for what could not be read."""
        for child in self.children:
            yield from child.faults()


@dataclass(frozen=True, kw_only=True)
class FormField(FormNode):
    """One input. `text` is what it shows, `rendered` what it showed before anybody typed."""

    kind: str  # text, long, decimal, number, integer, enum, boolean, date, time, datetime, secret, file, json, ...
    text: str = ""
    rendered: str = ""
    suggestions: Sequence[str] = ()  # where a choice has too many values for a list
    fault: str = ""  # why what was typed cannot be read
    exact: bool = True  # False: the value holds characters that an edit of this field would lose
    zone_name: str = ""  # the input beside a moment that holds its offset
    zone: str = ""
    zone_rendered: str = ""
    upload_name: str = ""  # the input that takes another file to replace the present one
    refused: str = ""  # why the file that was sent was not taken

    @property
    def edited(self) -> bool:
        return self.text != self.rendered or self.zone != self.zone_rendered

    @property
    def fixed(self) -> bool:
        """Tell whether there is nothing to choose: it is shown, and not posted."""
        return len(self.choices) == 1 and not self.error

    @property
    def too_long(self) -> bool:
        """Tell whether it is too long for an input, and therefore only shown."""
        return len(self.rendered) > EDITABLE

    @property
    def open(self) -> bool:
        """Tell whether it can be typed into."""
        return not (self.fixed or self.too_long)

    @property
    def wide(self) -> bool:
        return self.kind in ("long", "json", "file") or self.too_long

    @property
    def cut_off(self) -> bool:
        """Tell whether a narrow column would cut its text off."""
        return not (self.wide or self.choices) and len(self.rendered) > NARROW

    def touched(self) -> Iterator[tuple[str, str]]:
        if self.text != self.rendered:
            yield self.name, self.text
        if self.zone != self.zone_rendered:
            yield self.zone_name, self.zone
        if self.refused:
            yield self.upload_name, self.refused

    def faults(self) -> Iterator[tuple[str, str]]:
        if self.fault:
            yield self.pointer, self.fault


@dataclass(frozen=True, kw_only=True)
class RowWindow:
    """The page of rows that is drawn. Numbers count from 1."""

    name: str = ""  # of the mark that posts the page
    page: int = 1
    pages: int = 1
    first: int = 0
    last: int = 0
    total: int = 0


@dataclass(frozen=True, kw_only=True)
class FormGroup(FormNode):
    """An object with named members."""

    members: Sequence[FormNode] = ()
    rest: Sequence[FormNode] = ()  # read but not drawn: on another page
    window: RowWindow = RowWindow()
    carried: Sequence[tuple[str, str]] = ()  # what was typed on other pages
    kind = "group"

    @property
    def children(self) -> Sequence[FormNode]:
        return (*self.members, *self.rest)


@dataclass(frozen=True, kw_only=True)
class ClosedNode(FormNode):
    """A container that is not drawn until somebody opens it; its value is unchanged."""

    summary: str = ""
    kind = "closed"


@dataclass(frozen=True, kw_only=True)
class ItemRow:
    """One item of a list, or one entry of an object of free keys."""

    id: str
    node: FormNode
    number: int  # its place now, from 1
    added: bool = False
    moved: bool = False
    first: bool = False
    last: bool = False
    key_name: str = ""  # the input for the key of a new entry
    key: str = ""
    key_fault: str = ""

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def plain(self) -> bool:
        """Tell whether it is one input, which needs no line of its own."""
        return isinstance(self.node, FormField) and not self.node.wide

    def touched(self) -> Iterator[tuple[str, str]]:
        if self.key_name:
            yield self.key_name, self.key
        yield from self.node.touched()


@dataclass(frozen=True, kw_only=True)
class ItemRows(FormNode):
    """A list, or an object of free keys.

    `order` is what its mark posts, `rendered` what it posted before any change of the order.
    """

    rows: Sequence[ItemRow] = ()  # that are drawn
    rest: Sequence[ItemRow] = ()  # that are read but not drawn
    removed: Sequence[tuple[str, str]] = ()  # (name, summary) of items that were taken out
    order_name: str = ""
    order: str = ""
    rendered: str = ""
    window: RowWindow = RowWindow()
    carried: Sequence[tuple[str, str]] = ()
    grows: bool = True
    moves: bool = True
    noun: str = "item"
    extra: Sequence[tuple[str, str]] = ()  # its own faults, with their places
    kind = "rows"

    @property
    def children(self) -> Sequence[FormNode]:
        return [row.node for row in (*self.rows, *self.rest)]

    @property
    def edited(self) -> bool:
        return self.order != self.rendered

    def touched(self) -> Iterator[tuple[str, str]]:
        if self.order != self.rendered:
            yield self.order_name, self.order
        for row in (*self.rows, *self.rest):
            yield from row.touched()

    def faults(self) -> Iterator[tuple[str, str]]:
        yield from self.extra
        yield from super().faults()


@dataclass(frozen=True, kw_only=True)
class ShapeChoice(FormNode):
    """One of several shapes, or none at all."""

    chosen: str = ""
    rendered: str = ""
    inner: FormNode | None = None
    kind = "choice"

    @property
    def children(self) -> Sequence[FormNode]:
        return () if self.inner is None else (self.inner,)

    @property
    def edited(self) -> bool:
        return self.chosen != self.rendered

    def touched(self) -> Iterator[tuple[str, str]]:
        if self.chosen != self.rendered:
            yield self.name, self.chosen
        yield from super().touched()
