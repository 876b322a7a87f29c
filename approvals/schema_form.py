"""A typed form for JSON arguments, both ways. Pure.

`fields` turns arguments and their JSON Schema into inputs; `parse` turns what was posted back into
arguments. Text that comes back as it was rendered gives back the very value that was rendered, byte for
byte: an input cannot carry everything (a lone carriage return, U+0000), and a browser rewrites line
breaks, so `parse` compares with what a browser would have sent, and only then reads.

Whether the values hold is not decided here: the agent's own validator is the truth, and a value that
cannot be read at all (letters for a number) is all that is refused.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from checkpoints.patch import same

from . import pointers
from .form_readers import DECIMAL, READERS
from .schemas import Schema, Shape, label_of, schema_at, shape

__all__ = ["Field", "Parsed", "fields", "parse", "schema_at"]

NESTING = 2  # levels of objects whose members get inputs of their own
LONG = 80  # characters from which a text gets several lines
ABSENT: Any = object()  # the value of a field that the arguments do not have

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # line feed and tab can be carried


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One value of an enum. `value` is what the form posts."""

    value: str
    label: str


@dataclass(frozen=True, kw_only=True)
class Field:
    """One input. `value` is the text to show in it."""

    pointer: str  # within the arguments
    name: str  # of the input
    label: str
    kind: str  # text, long, decimal, number, integer, enum, boolean, date, datetime, json
    value: str
    choices: tuple[Choice, ...] = ()
    required: bool = False
    pinned: bool = False
    error: str = ""
    help: str = ""
    exact: bool = True  # False: the value holds characters that an edit of this field would lose


@dataclass(frozen=True, kw_only=True)
class Parsed:
    """What a posted form says. `arguments` holds the old value wherever there is an error."""

    arguments: Any
    errors: dict[str, str]  # JSON Pointer within the arguments -> message


@dataclass(frozen=True, kw_only=True)
class _Leaf:
    pointer: str
    name: str
    shape: Shape
    value: Any
    required: bool


def fields(
    schema: Schema,
    arguments: Any,
    *,
    prefix: str = "",
    pinned: Sequence[str] = (),
    errors: Mapping[str, str] | None = None,
    posted: Mapping[str, str] | None = None,
) -> list[Field]:
    """The inputs for `arguments`, in the schema's order, pinned ones first.

    An input's name is `prefix` and its pointer. `posted` is shown instead of the values where it has the
    name, so that nothing typed is lost; `errors` goes by pointer, and an error further in shows at its field.
    """
    made = []
    for leaf in _leaves(schema, arguments):
        name = prefix + leaf.pointer
        text = _text(leaf)
        made.append(
            Field(
                pointer=leaf.pointer,
                name=name,
                label=label_of(leaf.shape.schema, leaf.name),
                kind=_input(leaf, text),
                value=posted[name] if posted is not None and name in posted else text,
                choices=_choices(leaf),
                required=leaf.required,
                pinned=any(pointers.covers(place, leaf.pointer) for place in pinned),
                error=_error_at(leaf.pointer, errors or {}),
                help=str(leaf.shape.schema.get("description", "")),
                exact=_lines(text) == text and not _CONTROLS.search(text),
            )
        )
    return sorted(made, key=lambda field: not field.pinned)


def parse(schema: Schema, arguments: Any, posted: Mapping[str, str], *, prefix: str = "") -> Parsed:
    """Read a posted form against the arguments that it was rendered from.

    A field that was not posted keeps its value. Raises nothing: what cannot be read is in `errors`.
    """
    result, errors = arguments, {}
    for leaf in _leaves(schema, arguments):
        text = posted.get(prefix + leaf.pointer)
        rendered = _text(leaf)
        if text is None or _carried(text) == _carried(rendered):
            continue
        try:
            value = _read(leaf, _lines(text))
        except ValueError as fault:
            errors[leaf.pointer] = str(fault)
            continue
        if value is ABSENT or (leaf.value is not ABSENT and same(value, leaf.value)):
            continue
        result = pointers.put(result, leaf.pointer, value)
    return Parsed(arguments=result, errors=errors)


def _leaves(schema: Schema, arguments: Any) -> Iterator[_Leaf]:
    yield from _walk(schema, schema, arguments, pointer="", name="Value", required=True, depth=0)


def _walk(
    part: Schema, root: Schema, value: Any, *, pointer: str, name: str, required: bool, depth: int
) -> Iterator[_Leaf]:
    what = shape(part, root)
    if what.kind != "object" or not isinstance(value, dict) or depth > NESTING:
        yield _Leaf(pointer=pointer, name=name, shape=_fitting(what, value), value=value, required=required)
        return
    needed = list(what.schema.get("required", ()))
    # A card is stored with its keys sorted; the order of the declaration lives on in the list of required names.
    declared = {member: at for at, member in enumerate(needed)}
    ranked = sorted(what.schema["properties"].items(), key=lambda each: declared.get(each[0], len(needed)))
    properties = dict(ranked)
    unknown: dict[str, Any] = {member: {} for member in value if member not in properties}
    for member, inner in (properties | unknown).items():
        yield from _walk(
            inner,
            root,
            value.get(member, ABSENT),
            pointer=pointers.join(pointer, member),
            name=member,
            required=member in needed,
            depth=depth + 1,
        )


def _fitting(what: Shape, value: Any) -> Shape:
    """The shape, or raw JSON where the value is not what an input of this kind could show."""
    text = isinstance(value, str)
    plain = isinstance(value, int) and not isinstance(value, bool)
    fits = {
        "text": text,
        "date": text and _is_date(value),
        "datetime": text,
        "decimal": (text and bool(DECIMAL.fullmatch(value))) or plain or isinstance(value, float),
        "integer": plain,
        "number": plain or isinstance(value, float),
        "boolean": isinstance(value, bool),
        "enum": True,
    }
    empty = value is ABSENT or (value is None and what.nullable)
    if fits.get(what.kind, False) or (empty and what.kind in fits):
        return what
    return Shape(kind="json", schema=what.schema, nullable=what.nullable)


def _is_date(text: str) -> bool:
    """Whether a date input can show it: it empties itself for anything else."""
    try:
        return dt.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _text(leaf: _Leaf) -> str:
    value = leaf.value
    if value is ABSENT:
        return ""
    if leaf.shape.kind == "json":
        return json.dumps(value, indent=2, ensure_ascii=False)
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def _input(leaf: _Leaf, text: str) -> str:
    if leaf.shape.kind != "text":
        return leaf.shape.kind
    return "long" if len(text) > LONG or "\n" in text or "\r" in text else "text"


def _choices(leaf: _Leaf) -> tuple[Choice, ...]:
    if leaf.shape.kind == "boolean":
        offered = [Choice(value="true", label="Yes"), Choice(value="false", label="No")]
    elif leaf.shape.kind == "enum":
        offered = [Choice(value=_option(value), label=_option(value)) for value in leaf.shape.options]
        current = _text(leaf)
        if leaf.value not in (ABSENT, None) and current not in {choice.value for choice in offered}:
            offered.insert(0, Choice(value=current, label=current))
    else:
        return ()
    if leaf.shape.nullable or leaf.value is ABSENT:
        offered.insert(0, Choice(value="", label="None"))
    return tuple(offered)


def _option(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _error_at(pointer: str, errors: Mapping[str, str]) -> str:
    return " ".join(message for place, message in errors.items() if pointers.covers(pointer, place))


def _lines(text: str) -> str:
    """The text with every line break as a line feed, as the rest of the world writes it."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _carried(text: str) -> str:
    """What an input makes of a text: one kind of line break, no U+0000."""
    return _lines(text).replace("\0", "\ufffd")


def _read(leaf: _Leaf, text: str) -> Any:
    """The value that a changed text says. Raises ValueError with what to write instead."""
    kind = leaf.shape.kind
    if kind == "text":
        return None if not text and leaf.shape.nullable else text
    if not text.strip():
        return _empty(leaf)
    if kind == "enum":
        return _enum(leaf, text)
    return READERS[kind](text.strip())


def _empty(leaf: _Leaf) -> Any:
    if leaf.shape.nullable:
        return None
    if leaf.value is ABSENT:
        return ABSENT
    raise ValueError("This cannot be left empty.")


def _enum(leaf: _Leaf, text: str) -> Any:
    for value in leaf.shape.options:
        if _option(value) == text:
            return value
    raise ValueError(f"Choose one of {', '.join(_option(value) for value in leaf.shape.options)}.")
