"""Reading JSON Schema as pydantic writes it: references, nullable unions, and what a hostile one
may not do: whatever has the wrong type is left out. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from checkpoints.values import json_pointer

Schema = Mapping[str, Any]
_DEPTH = 32  # of references to references
_NULL: Schema = {"type": "null"}
_NESTED = 64  # levels of a schema that are read
_MAPS = ("properties", "$defs", "patternProperties")  # of schemas
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")  # of schemas
_PARTS = ("items", "additionalProperties", "propertyNames")  # one schema each
_PLAIN: dict[str, type | tuple[type, ...]] = {
    "required": list, "enum": list, "title": str, "description": str, "format": str, "pattern": str, "$ref": str,
    "type": (str, list), "discriminator": Mapping, "contentEncoding": str,
}  # fmt: skip


def sound(schema: Any, depth: int = 0) -> dict[str, Any]:
    """Return the schema without what is not of the type that JSON Schema gives it, as deep as it is read."""
    if not isinstance(schema, Mapping) or depth > _NESTED:
        return {}
    found: dict[str, Any] = {}
    for name, part in schema.items():
        if name in _MAPS and isinstance(part, Mapping):
            found[name] = {str(key): sound(each, depth + 1) for key, each in part.items()}
        elif name in _LISTS and isinstance(part, list):
            found[name] = [sound(each, depth + 1) for each in part]
        elif name in _PARTS and isinstance(part, Mapping):
            found[name] = sound(part, depth + 1)
        elif name not in (*_MAPS, *_LISTS, *_PARTS) and isinstance(part, _PLAIN.get(name, object)):
            found[name] = part
    return found


def schema_at(schema: Schema, pointer: str) -> dict[str, Any]:
    """Return the part of a schema that describes the value at `pointer`, with the definitions that it may refer to.

    {} where the schema says nothing of the place.
    """
    part: Schema = schema
    for token in json_pointer.tokens(pointer):
        part = _within(resolved(part, schema), token)
    if not part:
        return {}
    definitions = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    return {**definitions, **part}


def is_list(schema: Schema, pointer: str) -> bool:
    """Tell whether the value at `pointer` is a list."""
    return resolved(schema_at(schema, pointer), schema).get("type") == "array"


def resolved(part: Schema, root: Schema) -> Schema:
    """Follow the reference of `part`, and take a nullable union's null out; {} for what cannot be followed."""
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


def label_of(schema: Schema, name: str) -> str:
    """Return a name for people: the schema's title, else the field's own name in words."""
    title = schema.get("title")
    words = title if isinstance(title, str) and title else name.replace("_", " ").strip()
    return words[:1].upper() + words[1:].lower() if words.istitle() and " " in words else words[:1].upper() + words[1:]


def _definition(ref: str, root: Schema) -> Schema:
    if not ref.startswith("#"):
        return {}  # nothing that a schema names is ever fetched
    found = json_pointer.find(root, ref[1:]) if json_pointer.has(root, ref[1:]) else None
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


def is_nullable(part: Schema, root: Schema) -> bool:
    """Tell whether null is one of the values that this place takes."""
    for _ in range(_DEPTH):
        branches = part.get("anyOf") or part.get("oneOf") or []
        if _NULL in branches or (isinstance(part.get("type"), list) and "null" in part["type"]):
            return True
        if "$ref" not in part:
            return part.get("type") == "null"
        part = _definition(str(part["$ref"]), root)
    return False


def unveiled(schema: Schema, truth: Schema) -> dict[str, Any]:
    """Return a card's schema that hides only what the plan's own, `truth`, hides at the same place.

    The card is what the agent says at this one gate: it may not turn an account number into an empty password box. A
    part that something refers to is at several places at once, so it hides nothing.
    """
    direct = all(str(ref).startswith("#/$defs/") for ref in _references(schema))
    return dict(_unveiled(schema, "" if direct else None, truth))


def is_secret(schema: Schema) -> bool:
    """Tell whether a value of this schema is not to be shown."""
    return schema.get("writeOnly") is True or schema.get("format") == "password"


def _unveiled(part: Any, place: str | None, truth: Schema) -> Any:
    """Unveil one part, at a `place` of the value where that is known."""
    if isinstance(part, list):
        return [_unveiled(each, None, truth) for each in part]
    if not isinstance(part, Mapping):
        return part
    if is_secret(part) and (place is None or not is_secret(resolved(schema_at(truth, place), truth))):
        veils = {"writeOnly": True, "format": "password"}
        part = {name: each for name, each in part.items() if each != veils.get(name, _NULL)}
    found = {}
    for name, each in part.items():
        if place is not None and name == "properties" and isinstance(each, Mapping):
            found[name] = {key: _unveiled(one, json_pointer.join(place, key), truth) for key, one in each.items()}
        else:
            found[name] = _unveiled(
                each, json_pointer.join(place, "0") if place is not None and name == "items" else None, truth
            )
    return found


def _references(part: Any) -> list[Any]:
    if isinstance(part, list):
        return [ref for each in part for ref in _references(each)]
    if not isinstance(part, Mapping):
        return []
    own = [part["$ref"]] if "$ref" in part else []
    return own + [ref for each in part.values() for ref in _references(each)]
