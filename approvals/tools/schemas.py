"""What may be registered as the schema of a tool's arguments, with their labels beside it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from approvals.schema import validate
from approvals.schema.walk import Schema, schema_at
from checkpoints.errors import ValueRefused
from checkpoints.values import json_pointer
from checkpoints.values.canonical_json import canonical

LARGEST = 64 * 1024  # bytes
ARGUMENTS = 200  # of one tool, those in objects and lists of them counted
LABEL = 100  # characters
_OPEN = ("additionalProperties", "patternProperties", "allOf", "anyOf", "oneOf", "$ref", "unevaluatedProperties")


def fault(schema: Any) -> str:
    """Say what is wrong with a schema of arguments; "" for one that can be registered."""
    if not isinstance(schema, dict) or schema.get("type") != "object" or not isinstance(schema.get("properties"), dict):
        return 'Arguments are an object by name: write {"type": "object", "properties": {…}}.'
    if len(canonical(schema)) > LARGEST:
        return f"It is longer than {LARGEST // 1024} KB; name fewer things apart."
    if wrong := validate.unsound(schema):
        return f"It cannot be used: {wrong}."
    if outside := next((ref for ref in _references(schema) if not str(ref).startswith("#/$defs/")), None):
        return f"It refers to {str(outside)[:LABEL]!r}; refer to #/$defs/… in the schema itself."
    if sum(1 for _ in places(schema)) > ARGUMENTS:
        return f"It has more than {ARGUMENTS} arguments; name fewer things apart."
    return ""


def closed(part: Any) -> Any:
    """Forbid arguments that the schema does not name, wherever it does not say whether there may be others."""
    if isinstance(part, list):
        return [closed(each) for each in part]
    if not isinstance(part, Mapping):
        return part
    made = {
        name: each if name in ("const", "enum", "default", "examples") else closed(each) for name, each in part.items()
    }
    named = isinstance(part.get("properties"), Mapping) and part.get("type") == "object"
    return {**made, "additionalProperties": False} if named and not any(name in part for name in _OPEN) else made


def knows(schema: Schema, pointer: str) -> bool:
    """Tell whether the schema describes the argument at `pointer`."""
    try:
        return pointer != "" and bool(schema_at(schema, pointer))
    except ValueRefused:
        return False


def places(schema: Schema, at: str = "", depth: int = 0) -> Iterator[tuple[str, Schema]]:
    """Yield (pointer, schema) of each argument that is written out in place, those in objects and lists too."""
    if depth > 12:
        return
    properties = schema.get("properties")
    for name, part in properties.items() if isinstance(properties, Mapping) else ():
        if isinstance(part, Mapping):
            place = json_pointer.join(at, name)
            yield place, part
            yield from places(part, place, depth + 1)
    items = schema.get("items")
    if isinstance(items, Mapping):
        yield from places(items, json_pointer.join(at, "0"), depth + 1)


def labels(schema: Schema) -> dict[str, str]:
    """Return what each argument is called, by pointer."""
    return {place: part["title"] for place, part in places(schema) if isinstance(part.get("title"), str)}


def labelled(schema: Schema, called: Mapping[str, str]) -> dict[str, Any]:
    """Return the schema with these titles of arguments; others keep the title that they have."""
    return _labelled(schema, called, "", leave=True)


def unlabelled(schema: Schema) -> dict[str, Any]:
    """Return the schema without the titles that `labels` reads."""
    return _labelled(schema, {}, "", leave=False)


def _labelled(part: Schema, called: Mapping[str, str], at: str, *, leave: bool) -> dict[str, Any]:
    made = dict(part)
    if at and not at.endswith("/0") and at in called:
        made["title"] = called[at]
    elif at and not at.endswith("/0") and not leave and isinstance(made.get("title"), str):
        del made["title"]
    properties, items = made.get("properties"), made.get("items")
    if isinstance(properties, Mapping):
        made["properties"] = {
            name: _labelled(each, called, json_pointer.join(at, name), leave=leave)
            if isinstance(each, Mapping)
            else each
            for name, each in properties.items()
        }
    if isinstance(items, Mapping):
        made["items"] = _labelled(items, called, json_pointer.join(at, "0"), leave=leave)
    return made


def _references(part: Any) -> Iterator[Any]:
    if isinstance(part, list):
        for each in part:
            yield from _references(each)
    elif isinstance(part, Mapping):
        if "$ref" in part:
            yield part["$ref"]
        for each in part.values():
            yield from _references(each)
