"""The bounds of a value in words, from its schema. Pure: patterns are shown, never run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .shapes import Shape, bounds

LONGEST = 120  # characters of a pattern or a bound that are named


def hints(what: Shape, *, size: int | None = None) -> list[str]:
    """List what the schema asks of a value, each in a few words. With `size`, a text's bounds only if it is near."""
    schema = bounds(what.schema)
    found = [*_numbers(schema), *_sizes(schema, what.kind, size)]
    if size is None and what.kind == "text" and isinstance(what.schema.get("pattern"), str):
        found.append(f"in the form {short(what.schema['pattern'])}")
    if schema.get("uniqueItems") is True:
        found.append("each once")
    kinds = {"duration": "such as PT1H30M", "uuid": "a UUID", "email": "an e-mail address", "uri": "an address"}
    if what.kind in kinds:
        found.append(kinds[what.kind])
    return found


def _numbers(schema: Mapping[str, Any]) -> list[str]:
    words = {
        "exclusiveMinimum": "more than", "minimum": "at least", "exclusiveMaximum": "less than", "maximum": "at most",
        "multipleOf": "in steps of",
    }  # fmt: skip
    return [f"{said} {short(schema[name])}" for name, said in words.items() if _is_number(schema.get(name))]


def _sizes(schema: Mapping[str, Any], kind: str, size: int | None) -> list[str]:
    low, high, unit = {
        "list": ("minItems", "maxItems", "items"),
        "map": ("minProperties", "maxProperties", "entries"),
        "text": ("minLength", "maxLength", "characters"),
    }.get(kind, ("", "", ""))
    least, most = schema.get(low), schema.get(high)
    found = [f"at least {_counted(least, unit)}"] if _is_number(least) and least else []
    near = size is None or not _is_number(most) or size * 2 > float(most or 0)
    return found + ([f"at most {_counted(most, unit)}"] if _is_number(most) and near else [])


def _counted(count: Any, units: str) -> str:
    one = {"entries": "entry"}.get(units, units.removesuffix("s"))
    return f"{short(count)} {one if count == 1 else units}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def short(value: Any) -> str:
    """Write a value of a schema as text, cut where nobody would read on."""
    try:
        text = str(value)
    except ValueError:  # past Python's limit for decimal digits
        return "a number of very many digits"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"
