"""Whether a value holds under a schema of the agent's, and whether such a schema can be asked at all. Pure.

A card's schema is no more trusted than its words, and it is asked while a decision holds its locks: references go
nowhere but into the schema itself and are counted, patterns run on an engine whose time grows with the text and
never backtracks, and whatever else goes wrong with it is one fault.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator, ValidationError, validators  # type: ignore[import-untyped]
from pydantic_core import SchemaError, SchemaValidator, core_schema
from pydantic_core import ValidationError as Unmatched
from referencing import Registry

from . import pointers
from .schemas import Schema

REFERENCES = 20_000  # that are followed for one value
MOST = 100  # faults that are told
REMEMBERED = 16_000  # characters of a schema of which it is kept in mind whether it is sound
LONGEST = 300  # characters of one
UNREADABLE = "The agent's schema for this value cannot be read; choose another answer."
_PROBES: tuple[Any, ...] = (None, "", 0, True, [], {})  # one of each kind, to see whether a schema can be asked

Found = Iterator[ValidationError]
Rule = Callable[[Any, Any, Any, Any], Found]


class Unreadable(Exception):
    """The schema asks for more than anybody would write."""


def faults_of(schema: Schema, value: Any) -> list[tuple[str, str]]:
    """(JSON Pointer, message) for what does not hold, in the order of the places; one fault for a broken schema."""
    try:
        found = list(islice(_asked(schema, value), MOST))
    except Exception:  # noqa: BLE001  a hostile schema raises what it likes: RecursionError, TypeError, its own
        return [("", UNREADABLE)]
    found.sort(key=lambda fault: [str(name) for name in fault.absolute_path])
    return [
        (pointers.join("", *(str(name) for name in fault.absolute_path)), fault.message[:LONGEST]) for fault in found
    ]


def properties_of(schema: Schema) -> set[str]:
    """The names that a schema has for members of an object, or of one that may be null."""
    either = (schema, *(each for each in schema.get("anyOf", ()) if isinstance(each, Mapping)))
    return {name for each in either for name in each.get("properties", ())}


def unsound(schema: Any) -> str:
    """What is wrong with a schema itself, before anybody is asked for a value; "" for one that can be asked.

    An agent's gates ask by the same few again and again, and to look at one takes longer than to open a gate.
    """
    if not isinstance(schema, Mapping):
        return "it is no object"
    try:
        text = json.dumps(schema)
    except (TypeError, ValueError, RecursionError):
        return _unsound(schema)
    return _known_unsound(text) if len(text) <= REMEMBERED else _unsound(schema)


@lru_cache(maxsize=256)
def _known_unsound(text: str) -> str:
    return _unsound(json.loads(text))


def _unsound(schema: Schema) -> str:
    try:
        if "$schema" in schema and validators.validator_for(schema, default=None) is None:
            named = str(schema["$schema"])[:LONGEST]
            return f"/$schema {named!r} is no version of JSON Schema that is known here; leave it out"
        wrong = next(Draft202012Validator(Draft202012Validator.META_SCHEMA).iter_errors(dict(schema)), None)
        if wrong is not None:
            return (
                f"{pointers.join('', *(str(name) for name in wrong.absolute_path))} {wrong.message[:LONGEST]}".strip()
            )
        for probe in _PROBES:
            list(islice(_asked(schema, probe), MOST))
    except Exception as broken:  # noqa: BLE001  as above
        return f"it cannot be asked ({type(broken).__name__})"
    return ""


def _asked(schema: Schema, value: Any) -> Found:
    # An empty registry: a schema's reference to elsewhere is never fetched.
    found: Found = _counting()(dict(schema), registry=Registry()).iter_errors(value)
    return found


def _counting() -> Any:
    """A validator that follows so many references and no more: references to references double at every step."""
    left = REFERENCES

    def counted(name: str) -> Rule:
        def rule(validator: Any, part: Any, value: Any, schema: Any) -> Found:
            nonlocal left
            left -= 1
            if left < 0:
                raise Unreadable
            yield from Draft202012Validator.VALIDATORS[name](validator, part, value, schema) or ()

        return rule

    mild = {"pattern": _pattern, "patternProperties": _unasked, "additionalProperties": _additional}
    mild |= {"unevaluatedProperties": _unasked, "unevaluatedItems": _unasked}
    return validators.extend(
        Draft202012Validator, {**mild, "$ref": counted("$ref"), "$dynamicRef": counted("$dynamicRef")}
    )


def _pattern(validator: Any, pattern: Any, value: Any, schema: Any) -> Found:
    matcher = _matcher(pattern) if isinstance(pattern, str) and isinstance(value, str) else None
    try:
        if matcher is not None:
            matcher.validate_python(value)
    except Unmatched:
        yield ValidationError(f"{value!r} does not match {pattern!r}")


@lru_cache(maxsize=256)
def _matcher(pattern: str) -> SchemaValidator | None:
    """None for a pattern that this engine does not know, such as one that looks ahead: the agent's model runs it."""
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except SchemaError:
        return None


def _additional(validator: Any, part: Any, value: Any, schema: Any) -> Found:
    """Names that patterns speak of cannot be told from others where the patterns are not run."""
    if "patternProperties" not in schema:
        yield from Draft202012Validator.VALIDATORS["additionalProperties"](validator, part, value, schema) or ()


def _unasked(validator: Any, part: Any, value: Any, schema: Any) -> Found:
    """A rule that runs patterns over names: left to the agent's own model."""
    yield from ()
