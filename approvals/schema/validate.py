"""Validates a value against an agent's schema, and checks that such a schema can be used at all. Pure.

A card's schema is trusted no more than its words, and it is evaluated while a decision holds its locks: references go
only into the schema itself, patterns run on an engine that takes linear time and never backtracks, and any other error
is one fault. Work that multiplies is limited: references to references, branches, items under them. A caller with many
schemas for one submission counts them together (`counted`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache, partial
from itertools import islice
from threading import local
from typing import Any

import attrs
from jsonschema import Draft202012Validator, ValidationError, validators  # type: ignore[import-untyped]
from pydantic_core import SchemaError, SchemaValidator, core_schema
from pydantic_core import ValidationError as Unmatched
from referencing import Registry

from checkpoints.values import json_pointer

from .walk import Schema, unfollowed_reference

WORK = 250_000  # rules, items and branches that are evaluated for one submission: some seconds
REFERENCE = 12  # of that, the cost of following a reference
DEEPEST = 120  # levels of rules: below the interpreter's own limit, at which libraries in Rust panic
MOST = 100  # faults that are reported
WORDS = 10_000_000  # characters of the full messages: each may repeat the whole value
REMEMBERED = 16_000  # characters of a schema whose soundness is cached
LONGEST = 300  # characters of one message
UNREADABLE = "The agent's schema for this value cannot be read; choose another answer."
_PROBES: tuple[Any, ...] = (None, "", 0, True, [], {})  # one value of each kind, to test a schema

Found = Iterator[ValidationError]
Rule = Callable[[Any, Any, Any, Any], Found]


class Unreadable(Exception):
    """The schema takes more work than the limit."""


def faults_of(schema: Schema, value: Any) -> list[tuple[str, str]]:
    """List (JSON Pointer, message) for each fault of a value, in the order of places; one fault for a broken schema."""
    found: list[tuple[list[str], str]] = []
    count = 0
    try:
        with counted():
            for fault in islice(_asked(schema, value), MOST):
                found.append(([str(name) for name in fault.absolute_path], fault.message[:LONGEST]))
                count += len(fault.message)
                if count > WORDS:
                    break
    except Exception:  # noqa: BLE001  a hostile schema raises what it likes: RecursionError, TypeError, its own
        return [("", UNREADABLE)]
    found.sort(key=lambda fault: fault[0])
    return [(json_pointer.join("", *place), message) for place, message in found]


def unsound(schema: Any) -> str:
    """Say what is wrong with a schema itself, before anybody is asked for a value; "" for a sound one.

    Cached, since an agent's gates use the same few, and checking one takes longer than opening a gate.
    """
    if not isinstance(schema, Mapping):
        return "it is no object"
    try:
        text = json.dumps(schema)
    except (TypeError, ValueError, RecursionError):
        text = ""
    try:
        return _known_unsound(text) if 0 < len(text) <= REMEMBERED else _unsound(schema)
    except Unreadable:  # not cached: earlier checks may have used up the shared limit
        return "it is too large to check; use a simpler schema"


def unusable(schema: Any) -> str:
    """Say why values cannot be shown by a schema: it is unsound, or its secrets would not be found; "" if they can."""
    if wrong := unsound(schema):
        return wrong
    ref = unfollowed_reference(schema)
    words = f"refers to {ref[:100]!r}; refer to #/$defs/… in the schema itself, so that its secrets are found"
    return words if ref else ""


@lru_cache(maxsize=256)
def _known_unsound(text: str) -> str:
    return _unsound(json.loads(text))


def _unsound(schema: Schema) -> str:
    try:
        if "$schema" in schema and validators.validator_for(schema, default=None) is None:
            named = str(schema["$schema"])[:LONGEST]
            return f"/$schema {named!r} is no version of JSON Schema that is known here; leave it out"
        with counted():
            wrong = next(_Meta(_Meta.META_SCHEMA).iter_errors(dict(schema)), None)
            if wrong is not None:
                place = json_pointer.join("", *(str(name) for name in wrong.absolute_path))
                return f"{place} {wrong.message[:LONGEST]}".strip()
            for probe in _PROBES:
                list(islice(_asked(schema, probe), MOST))
    except Unreadable:
        raise
    except Exception as broken:  # noqa: BLE001  as above
        return f"it cannot be asked ({type(broken).__name__})"
    return ""


class _Left(local):
    """The work that is left in this thread."""

    work = 0
    depth = 0  # levels of rules now
    shared = False


_left = _Left()


@contextmanager
def counted() -> Iterator[None]:
    """Count all schema checks in the block together."""
    if _left.shared:
        yield
        return
    _left.work, _left.depth, _left.shared = WORK, 0, True
    try:
        yield
    finally:
        _left.shared = False


def used_up() -> bool:
    """Tell whether the checks counted together have passed the limit."""
    return _left.work < 0


def _spend(work: int) -> None:
    _left.work -= work
    if _left.work < 0:
        raise Unreadable


def _asked(schema: Schema, value: Any) -> Found:
    """Return an iterator of the value's faults. Raises whatever a hostile schema causes."""
    # An empty registry: a schema's reference to elsewhere is never fetched.
    found: Found = _Validator(dict(schema), registry=Registry()).iter_errors(value)
    return found


def _costing(rule: Rule, weigh: Callable[[Any, Any], int], validator: Any, part: Any, value: Any, schema: Any) -> Found:
    _spend(1 + weigh(part, value))
    _left.depth += 1
    try:
        if _left.depth > DEEPEST:
            raise Unreadable
        yield from rule(validator, part, value, schema) or ()
    finally:
        _left.depth -= 1


def _parts(part: Any, value: Any) -> int:
    return len(part) if isinstance(part, (list, dict)) else 0


def _looks(part: Any, value: Any) -> int:
    """Return the cost of a lookup in a list or an object, which is small."""
    return _parts(part, value) // 20


def _items(part: Any, value: Any) -> int:
    return len(value) if isinstance(value, (list, dict)) else 0


def _any_of(validator: Any, part: Any, value: Any, schema: Any) -> Found:
    """Check only whether a branch holds: jsonschema's own rule keeps every fault of each, which may be a million."""
    if not any(validator.evolve(schema=item).is_valid(value) for item in part):
        yield ValidationError(f"{value!r} is not valid under any of the given schemas")


def _one_of(validator: Any, part: Any, value: Any, schema: Any) -> Found:
    holds = sum(1 for item in part if validator.evolve(schema=item).is_valid(value))
    if holds != 1:
        words = "more than one" if holds else "any"
        yield ValidationError(f"{value!r} is {'' if holds else 'not '}valid under {words} of the given schemas")


def _unique(validator: Any, part: Any, value: Any, schema: Any) -> Found:
    """Compare items by a key: jsonschema's own rule compares each with each."""
    if part is not True or not isinstance(value, list):
        return
    if len(set(map(_known_by, value))) < len(value):
        yield ValidationError(f"{value!r} has non-unique elements")


def _known_by(value: Any) -> Hashable:
    """Return a key that is the same for values that JSON Schema calls equal: 1 and 1.0, but not 1 and true."""
    _spend(1)
    if isinstance(value, dict):
        return frozenset((name, _known_by(item)) for name, item in value.items())
    if isinstance(value, list):
        return ("list", *map(_known_by, value))
    return (bool, value) if isinstance(value, bool) else value


def _pattern(validator: Any, pattern: Any, value: Any, schema: Any) -> Found:
    matcher = _matcher(pattern) if isinstance(pattern, str) and isinstance(value, str) else None
    try:
        if matcher is not None:
            matcher.validate_python(value)
    except Unmatched:
        yield ValidationError(f"{value!r} does not match {pattern!r}")


@lru_cache(maxsize=256)
def _matcher(pattern: str) -> SchemaValidator | None:
    """Compile a pattern; None for one that this engine lacks, such as lookahead, which the agent's model runs."""
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except SchemaError:
        return None


def _additional(validator: Any, part: Any, value: Any, schema: Any) -> Found:
    """Skip the rule beside `patternProperties`: patterns over names are not run, so matching names are unknown."""
    if "patternProperties" not in schema:
        yield from Draft202012Validator.VALIDATORS["additionalProperties"](validator, part, value, schema) or ()


def _unasked(validator: Any, part: Any, value: Any, schema: Any) -> Found:
    """Skip a rule that runs patterns over names: the agent's own model checks it."""
    yield from ()


def _rules() -> dict[str, Rule]:
    """Return the rules that may evaluate more than one thing, each with its cost."""
    usual = Draft202012Validator.VALIDATORS
    own = {"anyOf": _any_of, "oneOf": _one_of, "uniqueItems": _unique, "additionalProperties": _additional}
    weights = {
        **dict.fromkeys(("anyOf", "oneOf", "allOf", "prefixItems"), _parts),
        **dict.fromkeys(("properties", "required", "enum", "dependentRequired", "dependentSchemas"), _looks),
        **dict.fromkeys(("items", "contains", "propertyNames", "additionalProperties"), _items),
        **dict.fromkeys(("$ref", "$dynamicRef"), lambda part, value: REFERENCE),
        **dict.fromkeys(("uniqueItems", "not", "if"), lambda part, value: 0),
    }
    found: dict[str, Rule] = {
        name: partial(_costing, own.get(name, usual[name]), weight) for name, weight in weights.items()
    }
    return (
        found
        | dict.fromkeys(("patternProperties", "unevaluatedProperties", "unevaluatedItems"), _unasked)
        | {"pattern": _pattern}
    )


def _class(rules: Mapping[str, Rule]) -> Any:
    """Make a validator that keeps these rules whatever `$schema` a part names, where jsonschema would switch."""
    made: Any = validators.extend(Draft202012Validator, rules)
    passed = [(field.name, field.alias) for field in attrs.fields(made) if field.init]

    def evolve(self: Any, **changes: Any) -> Any:
        return made(**{alias: getattr(self, name) for name, alias in passed if alias not in changes}, **changes)

    made.evolve = evolve
    return made


_Validator = _class(_rules())
_Meta = _class({name: rule for name, rule in _rules().items() if name.startswith("$")})
