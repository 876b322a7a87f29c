"""Checks the schema of a tool's arguments before it is registered, and handles their labels. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from approvals.schema import validate
from approvals.schema.walk import Schema, find_references, rewrite_schema, schema_at, unfollowed_reference, walk_members
from checkpoints.errors import ValueRefused
from checkpoints.values.canonical_json import encode_canonical

LARGEST = 64 * 1024  # bytes
ARGUMENTS = 200  # arguments of one tool, with those in objects and lists
LABEL = 100  # characters
_OPEN = ("additionalProperties", "patternProperties", "allOf", "anyOf", "oneOf", "$ref", "unevaluatedProperties")


def fault(schema: Any) -> str:
    """Say what is wrong with a schema of arguments; "" for one that can be registered."""
    if not isinstance(schema, dict) or schema.get("type") != "object" or not isinstance(schema.get("properties"), dict):
        return 'Arguments are an object by name: write {"type": "object", "properties": {…}}.'
    if len(encode_canonical(schema)) > LARGEST:
        return f"It is longer than {LARGEST // 1024} KB. List fewer arguments."
    if wrong := validate.unsound(schema):
        return f"It cannot be used: {wrong}."
    elsewhere = (ref for ref in find_references(schema) if not str(ref).startswith("#/$defs/"))
    if outside := next(elsewhere, "") or unfollowed_reference(schema):
        words = f"It refers to {str(outside)[:LABEL]!r}; refer to #/$defs/… in the schema itself."
        return words
    if sum(1 for _ in walk_members(schema)) > ARGUMENTS:
        return f"It has more than {ARGUMENTS} arguments. List fewer arguments."
    return ""


def closed(schema: Schema) -> dict[str, Any]:
    """Forbid arguments that the schema does not name, except where it says whether others are allowed."""

    def named_alone(part: Schema, place: str | None) -> Schema:
        named = isinstance(part.get("properties"), Mapping) and part.get("type") == "object"
        return {**part, "additionalProperties": False} if named and not any(name in part for name in _OPEN) else part

    made: dict[str, Any] = rewrite_schema(schema, named_alone)
    return made


def knows(schema: Schema, pointer: str) -> bool:
    """Tell whether the schema describes the argument at `pointer`."""
    try:
        return pointer != "" and bool(schema_at(schema, pointer))
    except ValueRefused:
        return False


def labels(schema: Schema) -> dict[str, str]:
    """Return pointer -> label of each argument."""
    return {place: part["title"] for place, part in walk_members(schema) if isinstance(part.get("title"), str)}


def labelled(schema: Schema, called: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the schema with these titles of arguments; None removes a title, and other arguments keep theirs."""

    def titled(part: Schema, place: str | None) -> Schema:
        if place is None or place not in called:
            return part
        title, rest = called[place], {name: item for name, item in part.items() if name != "title"}
        return {**rest, "title": title} if title else rest

    made: dict[str, Any] = rewrite_schema(schema, titled)
    return made


def unlabelled(schema: Schema) -> dict[str, Any]:
    """Return the schema without the titles that `labels` reads."""
    return labelled(schema, dict.fromkeys(labels(schema)))
