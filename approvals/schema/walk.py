"""Reads JSON Schema: references, unions, and the parts that describe a value, its members and its items. Pure.

Programs write the schemas, and a schema is trusted no more than its words: a reference to elsewhere is never fetched,
patterns are never run, whatever has the wrong type is left out, and depth and breadth are bounded. `resolve_part`
and `schema_at` give the one description by which a value is drawn; `list_parts` and `parts_within` give all that may
describe a value, for callers that must not miss one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from checkpoints.values import json_pointer

Schema = Mapping[str, Any]
_DEPTH = 32  # references to references, and unions of one branch in each other
_NULL: Schema = {"type": "null"}
_NESTED = 64  # levels of a schema that are read
MOST = 200  # parts that may describe one value
_WRITTEN = 12  # levels of objects and lists whose members are listed by `walk_members`
_MAPS = ("properties", "patternProperties", "dependentSchemas", "$defs")  # of schemas, by name
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")  # of schemas
_PARTS = (
    "items", "contains", "unevaluatedItems", "additionalProperties", "unevaluatedProperties", "propertyNames",
    "if", "then", "else", "not",
)  # one schema each  # fmt: skip
_SAME = frozenset({"anyOf", "oneOf", "allOf", "if", "then", "else", "dependentSchemas"})  # describe the same value
_ITEMS = ("items", "contains", "unevaluatedItems")
_OTHERS = ("additionalProperties", "unevaluatedProperties")
_MARKS = {"writeOnly": True, "format": "password"}  # each says that a value is secret
_VALUES = ("const", "enum", "default", "examples")  # hold values, not schemas
_PLAIN: dict[str, type | tuple[type, ...]] = {
    "required": list, "enum": list, "title": str, "description": str, "format": str, "pattern": str, "$ref": str,
    "type": (str, list), "discriminator": Mapping, "contentEncoding": str,
}  # fmt: skip


def sanitise_schema(schema: Any, depth: int = 0) -> dict[str, Any]:
    """Return the schema without keywords of the wrong type, as deep as it is read."""
    if not isinstance(schema, Mapping) or depth > _NESTED:
        return {}
    found: dict[str, Any] = {}
    for name, part in schema.items():
        if name in _MAPS and isinstance(part, Mapping):
            found[name] = {str(key): sanitise_schema(item, depth + 1) for key, item in part.items()}
        elif name in _LISTS and isinstance(part, list):
            found[name] = [sanitise_schema(item, depth + 1) for item in part]
        elif name in _PARTS and isinstance(part, Mapping):
            found[name] = sanitise_schema(part, depth + 1)
        elif name not in (*_MAPS, *_LISTS, *_PARTS) and isinstance(part, _PLAIN.get(name, object)):
            found[name] = part
    return found


def children(part: Schema) -> Iterator[tuple[str, Schema]]:
    """Yield (keyword, schema) for each schema that a part holds."""
    for name, held in part.items():
        if name in _MAPS and isinstance(held, Mapping):
            yield from ((name, value) for value in held.values() if isinstance(value, Mapping))
        elif name in _LISTS and isinstance(held, list):
            yield from ((name, item) for item in held if isinstance(item, Mapping))
        elif name in _PARTS and isinstance(held, Mapping):
            yield name, held


def property_schemas(part: Schema) -> dict[str, Schema]:
    """Return the schemas of the members that a part names."""
    named = part.get("properties")
    return {name: item for name, item in _map(named).items() if isinstance(item, Mapping)}


def union_branches(part: Schema) -> list[Schema]:
    """Return the branches of a union; [] for what is none."""
    found = part.get("anyOf") or part.get("oneOf")
    return [item for item in found if isinstance(item, Mapping)] if isinstance(found, list) else []


def find_definition(part: Schema, root: Schema) -> Schema:
    """Return the definition to which a part refers in the same schema; {} where there is none."""
    return _map(json_pointer.get(root, place)) if (place := _place(part.get("$ref"))) is not None else {}


def referred_name(part: Schema) -> str:
    """Return the name of the definition to which a part refers; "" where it refers to none."""
    return str(part.get("$ref", "")).rpartition("/")[2]


def unfollowed_reference(schema: Schema) -> str:
    """Return the first reference that leads to a definition by other ways than `find_definition`; "" for none.

    What is behind one could be secret, and nobody would see that.
    """
    for part in reachable_parts(schema, schema):
        others = [part[name] for name in ("$dynamicRef", "$recursiveRef") if name in part]
        others += [part["$id"]] if "$id" in part and part is not schema else []
        if "$ref" in part and ((place := _place(part["$ref"])) is None or not json_pointer.has_value(schema, place)):
            others.append(part["$ref"])
        if others:
            return str(others[0])
    return ""


def list_parts(schemas: Iterable[Schema], root: Schema) -> list[Schema]:
    """List every part that describes the same value as these: with their references, branches and conditions."""
    found: dict[int, Schema] = {}
    left = list(schemas)
    while left and len(found) < MOST:
        part = left.pop()
        if part and id(part) not in found:
            found[id(part)] = part
            left += [find_definition(part, root), *(item for name, item in children(part) if name in _SAME)]
    return list(found.values())


def reachable_parts(part: Schema, root: Schema) -> Iterator[Schema]:
    """Yield a part and everything that it holds or refers to, each once."""
    seen: set[int] = set()
    left = [part]
    while left:
        here = left.pop()
        if here and id(here) not in seen:
            seen.add(id(here))
            yield here
            left += [find_definition(here, root), *(item for name, item in children(here) if name != "$defs")]


def parts_within(part: Schema, token: str, *, certain: bool = False) -> list[Schema]:
    """List the parts that may describe a member or an item, the surest first.

    Patterns are never run, so any of them may match. `certain`: without these, and without parts that depend on others.
    """
    named = _map(part.get("properties"))
    found = [named[token]] if token in named else []
    if json_pointer.INDEX.fullmatch(token):
        prefix = part.get("prefixItems")
        found += prefix[int(token) :][:1] if isinstance(prefix, list) else []
        found += [part.get("items")] if certain else [part.get(name) for name in _ITEMS]
    if token not in named:
        found += [part.get("additionalProperties")] if certain else [part.get(name) for name in _OTHERS]
    found += [] if certain else _map(part.get("patternProperties")).values()
    return [item for item in found if isinstance(item, Mapping)]


def schema_at(schema: Schema, pointer: str) -> dict[str, Any]:
    """Return the part of a schema that describes the value at `pointer`, with the definitions that it may refer to.

    {} where the schema does not describe the place.
    """
    part: Schema = schema
    for token in json_pointer.split_pointer(pointer):
        part = next(iter(parts_within(resolve_part(part, schema), token, certain=True)), {})
    if not part:
        return {}
    return {**part, "$defs": schema["$defs"]} if "$defs" in schema else dict(part)


def walk_members(schema: Schema, at: str = "", depth: int = 0) -> Iterator[tuple[str, Schema]]:
    """Yield (pointer, part) of each member that the schema writes out without a reference, in objects and lists too."""
    if depth > _WRITTEN:
        return
    for name, part in property_schemas(schema).items():
        place = json_pointer.join(at, name)
        yield place, part
        yield from walk_members(part, place, depth + 1)
    if isinstance(items := schema.get("items"), Mapping):
        yield from walk_members(items, json_pointer.join(at, "0"), depth + 1)


def find_references(part: Any) -> Iterator[Any]:
    """Yield every `$ref` that is written anywhere in a schema."""
    if isinstance(part, Mapping):
        if "$ref" in part:
            yield part["$ref"]
        part = part.values()
    elif not isinstance(part, list):
        return
    for item in part:
        yield from find_references(item)


def rewrite_schema(
    part: Any, change: Callable[[Schema, str | None], Schema], place: str | None = "", *, values: bool = False
) -> Any:
    """Copy a schema with each part replaced by `change(part, place)`, and then the parts within that one.

    `place`: the pointer to the value, with 0 for every item; None where a part may describe other values too. Whatever
    a reference can lead to is changed: maps of parts as well, and with `values` defaults and constants.
    """
    if isinstance(part, list):
        return [rewrite_schema(item, change, None, values=values) for item in part]
    if not isinstance(part, Mapping):
        return part
    made = dict(change(part, place))
    for name, entry in made.items():
        if name in _MAPS and isinstance(entry, Mapping):
            known = place is not None and name == "properties"
            made[name] = {
                key: rewrite_schema(item, change, json_pointer.join(place or "", key) if known else None, values=values)
                for key, item in change(entry, None).items()
            }
        elif values or name not in _VALUES:
            item = json_pointer.join(place, "0") if place is not None and name == "items" else None
            made[name] = rewrite_schema(entry, change, item, values=values)
    return made


def move_schema(schema: Schema, to: str) -> dict[str, Any]:
    """Return the schema for the place `to` in another one, with its references led there."""

    return with_references(schema, lambda ref: f"#{to}{ref[1:]}" if ref.startswith("#") else ref)


def with_references(schema: Schema, lead: Callable[[str], str]) -> dict[str, Any]:
    """Return the schema with each of its references as `lead` returns it."""

    def led(part: Schema, _place: str | None) -> Schema:
        return {**part, "$ref": lead(part["$ref"])} if isinstance(part.get("$ref"), str) else part

    copy: dict[str, Any] = rewrite_schema(schema, led, values=True)
    return copy


def is_list(schema: Schema, pointer: str) -> bool:
    """Tell whether the value at `pointer` is a list."""
    return resolve_part(schema_at(schema, pointer), schema).get("type") == "array"


def resolve_part(part: Schema, root: Schema) -> Schema:
    """Follow the reference of `part`, and remove null from a nullable union; {} where it cannot be followed."""
    for _ in range(_DEPTH):
        union = union_branches(part)
        others = [item for item in union if item != _NULL]
        item = part.get("allOf")
        if "$ref" in part:
            inner, left_out = find_definition(part, root), ["$ref"]
        elif isinstance(item, list) and len(item) == 1:
            inner, left_out = _map(item[0]), ["allOf"]
        elif isinstance(kind := part.get("type"), list) and len(rest := [item for item in kind if item != "null"]) == 1:
            return {**part, "type": rest[0]}
        elif len(others) == 1:
            inner, left_out = others[0], ["anyOf", "oneOf"]
        else:
            return {**_without(part, "anyOf", "oneOf"), "anyOf": others} if union else part
        part = {**inner, **_without(part, *left_out)}
    return {}


def is_nullable(part: Schema, root: Schema) -> bool:
    """Tell whether null is one of the values that this place takes."""
    for _ in range(_DEPTH):
        if _NULL in union_branches(part) or (isinstance(part.get("type"), list) and "null" in part["type"]):
            return True
        if "$ref" not in part:
            return part.get("type") == "null"
        part = find_definition(part, root)
    return False


def label_of(schema: Schema, name: str) -> str:
    """Return a name for people: the schema's title, else the field's own name in words."""
    title = schema.get("title")
    words = title if isinstance(title, str) and title else name.replace("_", " ").strip()
    return words[:1].upper() + words[1:].lower() if words.istitle() and " " in words else words[:1].upper() + words[1:]


def is_secret(schema: Schema) -> bool:
    """Tell whether values of this schema are secret."""
    return schema.get("writeOnly") is True or schema.get("format") == "password"


def unveil_schema(schema: Schema, truth: Schema) -> dict[str, Any]:
    """Return a card's schema that hides only what the plan's own, `truth`, hides at the same place.

    A card is written for one gate, and must not turn an account number into an empty password box. A part that is
    referred to may be at several places, so it hides nothing. Values in constants and defaults stay as they are.
    """
    marked = {id(part) for part in reachable_parts(schema, schema) if is_secret(part)}

    def bare(part: Schema, place: str | None) -> Schema:
        if id(part) not in marked or (place is not None and is_secret(resolve_part(schema_at(truth, place), truth))):
            return part
        return {name: item for name, item in part.items() if item != _MARKS.get(name, _NULL)}

    direct = all(str(ref).startswith("#/$defs/") for ref in find_references(schema))
    made: dict[str, Any] = rewrite_schema(schema, bare, "" if direct else None, values=True)
    return made


def _without(part: Schema, *names: str) -> Schema:
    return {name: item for name, item in part.items() if name not in names}


def _place(ref: Any) -> str | None:
    """Return the pointer in a reference into the same schema, percent-encoded there (RFC 6901); None for another."""
    return unquote(ref[1:]) if isinstance(ref, str) and ref.startswith("#") else None


def _map(part: Any) -> Mapping[str, Any]:
    return part if isinstance(part, Mapping) else {}
