"""Reading JSON Schema as pydantic writes it: references, nullable unions, and which input suits a value. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import pointers

Schema = Mapping[str, Any]
_DEPTH = 32  # of references to references
_NULL: Schema = {"type": "null"}


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What one place of a schema wants."""

    kind: str  # text, decimal, number, integer, enum, boolean, date, datetime, object, json
    schema: Schema  # without references, null taken out
    nullable: bool = False
    options: tuple[Any, ...] = ()  # an enum's values


def schema_at(schema: Schema, pointer: str) -> dict[str, Any]:
    """The part of a schema that speaks of the value at `pointer`, with the definitions that it may refer to.

    {} where the schema says nothing of the place.
    """
    part: Schema = schema
    for token in pointers.tokens(pointer):
        part = _within(resolved(part, schema), token)
    if not part:
        return {}
    definitions = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    return {**definitions, **part}


def resolved(part: Schema, root: Schema) -> Schema:
    """`part` with its reference followed and a nullable union's null taken out; {} for what cannot be followed."""
    for _ in range(_DEPTH):
        if "$ref" in part:
            beside = {name: value for name, value in part.items() if name != "$ref"}
            part = {**_definition(str(part["$ref"]), root), **beside}
        elif isinstance(part.get("allOf"), list) and len(part["allOf"]) == 1:
            beside = {name: value for name, value in part.items() if name != "allOf"}
            part = {**part["allOf"][0], **beside}
        else:
            return _without_null(part, root)
    return {}


def shape(part: Schema, root: Schema) -> Shape:
    """How a value at this place is best asked for."""
    schema = resolved(part, root)
    nullable = _nullable(part, root)
    if "const" in schema:
        return Shape(kind="enum", schema=schema, nullable=nullable, options=(schema["const"],))
    if isinstance(schema.get("enum"), list):
        options = tuple(value for value in schema["enum"] if value is not None)
        return Shape(kind="enum", schema=schema, nullable=nullable or None in schema["enum"], options=options)
    return Shape(kind=_kind(schema), schema=schema, nullable=nullable)


def label_of(schema: Schema, name: str) -> str:
    """A name for people: the schema's title, else the field's own name in words."""
    title = schema.get("title")
    words = title if isinstance(title, str) and title else name.replace("_", " ").strip()
    return words[:1].upper() + words[1:].lower() if words.istitle() and " " in words else words[:1].upper() + words[1:]


def _definition(ref: str, root: Schema) -> Schema:
    if not ref.startswith("#"):
        return {}  # nothing that a schema names is ever fetched
    found = pointers.get(root, ref[1:]) if pointers.has(root, ref[1:]) else None
    return found if isinstance(found, dict) else {}


def _within(schema: Schema, token: str) -> Schema:
    properties = schema.get("properties")
    if isinstance(properties, dict) and token in properties:
        return dict(properties[token])
    prefix = schema.get("prefixItems")
    if isinstance(prefix, list) and token.isdigit() and int(token) < len(prefix):
        return dict(prefix[int(token)])
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            return dict(schema[name])
    return {}


def _without_null(schema: Schema, root: Schema) -> Schema:
    kind = schema.get("type")
    if isinstance(kind, list) and len(rest := [k for k in kind if k != "null"]) == 1:
        return {**schema, "type": rest[0]}
    branches = schema.get("anyOf") or schema.get("oneOf")
    if not isinstance(branches, list):
        return schema
    rest = [branch for branch in branches if branch != _NULL]
    beside = {name: value for name, value in schema.items() if name not in ("anyOf", "oneOf")}
    return {**resolved(rest[0], root), **beside} if len(rest) == 1 else {**beside, "anyOf": rest}


def _nullable(part: Schema, root: Schema) -> bool:
    for _ in range(_DEPTH):
        branches = part.get("anyOf") or part.get("oneOf") or []
        if _NULL in branches or (isinstance(part.get("type"), list) and "null" in part["type"]):
            return True
        if "$ref" not in part:
            return part.get("type") == "null"
        part = _definition(str(part["$ref"]), root)
    return False


def _kind(schema: Schema) -> str:
    if _is_decimal(schema):
        return "decimal"
    kind, form = schema.get("type"), schema.get("format")
    if kind == "string":
        return {"date": "date", "date-time": "datetime"}.get(str(form), "text")
    if kind == "object" and isinstance(schema.get("properties"), dict):
        return "object"
    return kind if kind in ("integer", "number", "boolean") else "json"


def _is_decimal(schema: Schema) -> bool:
    """A Decimal as pydantic writes it: a text with a number's pattern, or a number beside such a text."""
    if schema.get("type") == "string":
        return schema.get("format") == "decimal" or _is_number_pattern(schema.get("pattern"))
    branches = schema.get("anyOf")
    if not isinstance(branches, list) or len(branches) != 2:
        return False
    text = next((branch for branch in branches if branch.get("type") == "string"), None)
    if text is None or not any(branch.get("type") == "number" for branch in branches):
        return False
    return text.get("format") in (None, "decimal") and ("pattern" not in text or _is_number_pattern(text["pattern"]))


def _is_number_pattern(pattern: Any) -> bool:
    return isinstance(pattern, str) and "\\d" in pattern and "[+-]" in pattern
