"""Describes the bounds of a value, from its schema. Pure: patterns are shown, never run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from approvals.english import noun_for

from .shapes import LISTED, Shape, bounds_schema

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


def list_hints(what: Shape, *, size: int | None = None) -> list[str]:
    """List the schema's constraints on a value, in words. With a text's `size`, only the bounds that it comes near."""
    schema = bounds_schema(what.schema)
    found = [*_numbers(schema), *_sizes(schema, what.kind, size)]
    if size is None and what.kind == "text" and isinstance(what.schema.get("pattern"), str):
        found.append(f"in the form {shorten_value(what.schema['pattern'])}")
    if schema.get("uniqueItems") is True:
        found.append("each once")
    if what.kind in KINDS:
        found.append(str(KINDS[what.kind]))
    if len(what.options) > LISTED:
        found.append(f"one of {len(what.options):,} values")
    return found


def _numbers(schema: Mapping[str, Any]) -> list[str]:
    return [word.format(shorten_value(schema[name])) for name, word in NUMBERS.items() if _is_number(schema.get(name))]


def _sizes(schema: Mapping[str, Any], kind: str, size: int | None) -> list[str]:
    if kind not in SIZES:
        return []
    low, high, *units = SIZES[kind]
    least, most = schema.get(low), schema.get(high)
    found = [f"at least {_counted(least, *units)}"] if _is_number(least) and least else []
    near = size is None or not _is_number(most) or size * 2 > float(most or 0)
    return found + ([f"at most {_counted(most, *units)}"] if _is_number(most) and near else [])


def _counted(count: Any, singular: str, many: str) -> str:
    """Write a number with its unit, in the plural where needed."""
    return f"{shorten_value(count)} {noun_for(count, singular, many)}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def shorten_value(value: Any) -> str:
    """Write a value of a schema as text, cut after LONGEST characters."""
    try:
        text = str(value)
    except ValueError:  # past Python's limit for decimal digits
        return "a number of very many digits"
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}… ({len(text):,} characters)"
