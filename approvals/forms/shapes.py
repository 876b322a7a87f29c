"""Chooses the kind of node for one place of a schema, checks whether a value fits it, and describes its bounds. Pure.

Patterns are shown, never run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from approvals.english import noun_for
from approvals.schema.walk import (
    Schema,
    is_nullable,
    label_of,
    property_schemas,
    referred_name,
    resolve_part,
    union_branches,
)
from checkpoints.values.artifacts import MARK

from . import texts

FORMATS = {
    "date": "date", "time": "time", "date-time": "datetime", "duration": "duration", "uuid": "uuid",
    "email": "email", "uri": "uri", "password": "secret", "base64": "base64", "base64url": "base64",
}  # fmt: skip
CONTAINERS = frozenset({"object", "list", "tuple", "map", "union"})
BRANCHES = 40  # of a union that can be chosen
NESTED = 4  # unions in unions
LISTED = 200  # values of an enum that are offered as a list
_KINDS = {
    "object": "object", "map": "object", "tuple": "list", "long": "text", "json": "raw JSON",
}  # fmt: skip
LONGEST = 120  # characters shown of a pattern or a bound
KINDS = {
    "duration": "such as PT1H30M", "uuid": "a UUID",
    "email": "an e-mail address", "uri": "an address",
}  # fmt: skip
NUMBERS = {
    "exclusiveMinimum": "more than {}", "minimum": "at least {}",
    "exclusiveMaximum": "less than {}", "maximum": "at most {}",
    "multipleOf": "in steps of {}",
}  # fmt: skip
SIZES = {
    "list": ("minItems", "maxItems", "item", "items"),
    "map": ("minProperties", "maxProperties", "entry", "entries"),
    "text": ("minLength", "maxLength", "character", "characters"),
}


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The shape of a value that one place of a schema describes."""

    kind: str  # a Field's kind, or object, list, tuple, map, union
    schema: Schema  # without references, null taken out
    nullable: bool = False
    options: tuple[Any, ...] = ()  # an enum's values
    branches: tuple[Schema, ...] = ()  # a union's


RAW = Shape(kind="json", schema={})


def shape(part: Schema, root: Schema) -> Shape:
    """Find the shape for a form's node at this place of the schema."""
    schema = resolve_part(part, root)
    nullable = is_nullable(part, root)
    if "const" in schema:
        return Shape(kind="enum", schema=schema, nullable=nullable, options=(schema["const"],))
    if isinstance(schema.get("enum"), list):
        options = tuple(value for value in schema["enum"] if value is not None)
        return Shape(kind="enum", schema=schema, nullable=nullable or None in schema["enum"], options=options)
    kind = _kind(schema)
    if kind != "union":
        return Shape(kind=kind, schema=schema, nullable=nullable)
    branches, null = _branches(schema, root)
    return Shape(kind=kind, schema=schema, nullable=nullable or null, branches=branches)


def member_schemas(what: Shape) -> dict[str, Schema]:
    """Return an object's declared members in the order of their declaration.

    A card is stored with its keys sorted; the order of the declaration is kept in the list of required names.
    """
    needed = [str(name) for name in what.schema.get("required", ())]
    declared = {member: at for at, member in enumerate(needed)}
    return dict(sorted(property_schemas(what.schema).items(), key=lambda pair: declared.get(pair[0], len(needed))))


def item_schema(what: Shape) -> Schema:
    """Return the schema of a list's items, or of the values of an object of free keys."""
    for name in ("items", "additionalProperties"):
        if isinstance(what.schema.get(name), Mapping):
            return dict(what.schema[name])
    patterns = what.schema.get("patternProperties")
    return dict(next(iter(patterns.values()))) if isinstance(patterns, Mapping) and patterns else {}


def fits(what: Shape, value: Any) -> bool:
    """Tell whether an input of this kind can show the value."""
    if what.kind in ("object", "map"):
        return isinstance(value, dict)
    if what.kind == "list":
        return isinstance(value, list)
    if what.kind == "tuple":
        return isinstance(value, list) and len(value) == len(what.schema["prefixItems"])
    if what.kind == "enum":
        return True
    return texts.shows(what.kind, value)


def admits(part: Schema, value: Any, root: Schema) -> bool:
    """Tell whether a value fits this branch of a union: by its type, an object by its names and constants."""
    what = shape(part, root)
    if value is None:
        return what.nullable
    if what.kind == "enum":
        return any(type(value) is type(option) and value == option for option in what.options)
    if what.kind == "union":
        return any(admits(branch, value, root) for branch in what.branches)
    if what.kind == "object" and isinstance(value, dict):
        known = what.schema["properties"]
        needed = [str(name) for name in what.schema.get("required", ())]
        marks = {name: shape(part, root) for name, part in property_schemas(what.schema).items() if "const" in part}
        marked = all(name not in value or value[name] in shape.options for name, shape in marks.items())
        return marked and all(name in value for name in needed) and all(name in known for name in value)
    return what.kind != "json" and fits(what, value)


def tags(part: Schema, root: Schema) -> set[str]:
    """Return the names by which a fault's place may mean the branch: its title, its type, or its constant."""
    what = shape(part, root)
    schema = what.schema
    found = {str(schema.get(name)) for name in ("title", "type") if schema.get(name)}
    found |= {str(part["const"]) for part in property_schemas(schema).values() if "const" in part}
    short = {"integer": "int", "string": "str", "number": "float", "boolean": "bool", "array": "list", "object": "dict"}
    found |= {short[item] for item in list(found) if item in short}
    return found | ({referred_name(part)} - {""})


def labels(branches: Sequence[Schema], root: Schema) -> list[str]:
    """Name each branch, uniquely even in lower case."""
    found = [_label(part, root) for part in branches]
    plain = [item.lower() for item in found]
    return [word if plain.count(word.lower()) == 1 else f"{word} {at}" for at, word in enumerate(found, 1)]


def spelled(part: Schema, root: Schema, label: str, *, quoted: bool) -> str:
    """Name a branch for its option: the schema's title and the value that it stands for.

    `quoted`: somebody else wrote the schema's words, so the value or the kind comes first and the words are quoted.
    """
    what = shape(part, root)
    title = what.schema.get("title")
    if not isinstance(title, str):
        return label
    true = " or ".join(texts.option(option) for option in what.options[:3]) if what.kind == "enum" else ""
    if quoted:
        return f"{true or _KINDS.get(what.kind, what.kind)}, which they call “{title}”"
    return f"{title} ({true})" if true and true != title else label


def _label(part: Schema, root: Schema) -> str:
    what = shape(part, root)
    if isinstance(what.schema.get("title"), str):
        return label_of(what.schema, "")
    if what.kind == "enum":
        return " or ".join(texts.option(option) for option in what.options[:3])
    return _KINDS.get(what.kind, what.kind)


def _kind(schema: Schema) -> str:
    if is_decimal(schema):
        return "decimal"
    if isinstance(schema.get("anyOf"), list) or isinstance(schema.get("oneOf"), list):
        return "union"
    kind, properties = schema.get("type"), schema.get("properties")
    if isinstance(kind, list):
        return "union"
    if kind == "string":
        encoded = schema.get("contentEncoding") in ("base64", "base64url")
        plain = "base64" if encoded else FORMATS.get(str(schema.get("format")), "text")
        return "secret" if schema.get("writeOnly") is True else plain
    if kind == "object" and isinstance(properties, Mapping):
        return "file" if MARK in properties else "object"
    if kind == "object":
        return "map" if item_schema(Shape(kind="map", schema=schema)) else "json"
    if kind == "array":
        if isinstance(schema.get("prefixItems"), list):
            return "tuple"
        return "list" if schema.get("items") and isinstance(schema["items"], Mapping) else "json"
    return str(kind) if kind in ("integer", "number", "boolean") else "json"


def _branches(schema: Schema, root: Schema, depth: int = 0) -> tuple[tuple[Schema, ...], bool]:
    """Return (the branches of a union, with those of unions nested in it; whether one of them is null)."""
    if isinstance(schema.get("type"), list):
        return tuple({**schema, "type": item} for item in schema["type"] if item != "null"), "null" in schema["type"]
    found: list[Schema] = []
    null = False
    for branch in union_branches(schema)[:BRANCHES]:
        inner = resolve_part(branch, root)
        null = null or is_nullable(branch, root)
        if "const" not in inner and "enum" not in inner and _kind(inner) == "union":
            more, other = _branches(inner, root, depth + 1) if depth < NESTED else ((), False)
            found, null = [*found, *more], null or other
        elif inner.get("type") != "null":
            found.append(branch)
    return tuple(found[:BRANCHES]), null


def is_decimal(schema: Schema) -> bool:
    """Tell a Decimal as pydantic writes it: a text with a number's pattern, or a number beside such a text."""
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


def list_hints(what: Shape, *, size: int | None = None) -> list[str]:
    """List the schema's constraints on a value, in words. With a text's `size`, only the bounds that it comes near."""
    schema, branches = what.schema, what.schema.get("anyOf")
    if isinstance(branches, list):  # a decimal's bounds are in the branch beside its text
        numbers = (part for part in branches if isinstance(part, Mapping) and part.get("type") == "number")
        schema = next(numbers, schema)
    bounds = {
        name: schema[name] for name in (*NUMBERS, *SIZES.get(what.kind, ())) if type(schema.get(name)) in (int, float)
    }
    found = [word.format(shorten_value(bounds[name])) for name, word in NUMBERS.items() if name in bounds]
    if what.kind in SIZES:
        low, high, *units = SIZES[what.kind]
        sizes = {"least": bounds.get(low) or None, "most": bounds.get(high)}
        if size is not None and size * 2 <= float(sizes["most"] or 0):
            sizes["most"] = None
        found += [
            f"at {word} {shorten_value(count)} {noun_for(count, *units)}"
            for word, count in sizes.items()
            if count is not None
        ]
    if size is None and what.kind == "text" and isinstance(what.schema.get("pattern"), str):
        found.append(f"in the form {shorten_value(what.schema['pattern'])}")
    if schema.get("uniqueItems") is True:
        found.append("each once")
    if what.kind in KINDS:
        found.append(str(KINDS[what.kind]))
    if len(what.options) > LISTED:
        found.append(f"one of {len(what.options):,} values")
    return found


def shorten_value(value: Any) -> str:
    """Write a value of a schema as text, cut after LONGEST characters."""
    try:
        text = str(value)
    except ValueError:  # past Python's limit for decimal digits
        return "a number of very many digits"
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}… ({len(text):,} characters)"
