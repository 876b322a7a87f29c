"""Typed forms for an action's arguments, from their JSON Schema. Pure.

A form has a field for each value that is no object: objects are followed, lists are edited as JSON. A field that was
not touched gives back the very value that was there. Values are checked here only as far as their type; the server's
own rules decide, and name each fault by its JSON Pointer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import json_pointer
from ..json_pointer import MISSING
from .lines import make_visible

DEEPEST, MOST = 12, 200  # levels, and fields
TEXT, NUMBER, WHOLE, CHOICE, SWITCH, JSON = "text", "number", "whole number", "choice", "yes or no", "JSON"


class NotValid(ValueError):
    """Something typed does not fit; the sentence says what does."""


@dataclass(frozen=True)
class Field:
    """One value of the form. `text` is the value as people edit it."""

    pointer: str
    label: str
    kind: str
    value: Any
    hint: str = ""
    options: tuple[Any, ...] = ()
    required: bool = True

    @property
    def text(self) -> str:
        """Return the value as it is edited: a text as it is, anything else as JSON; empty where it is left out."""
        return "" if self.value is MISSING else written(self.value, self.kind)

    @property
    def multiline(self) -> bool:
        """Tell whether it needs more than a line."""
        return self.kind in (TEXT, JSON) and ("\n" in self.text or len(self.text) > 60)

    def read(self, typed: str) -> Any:
        """Return the value that was typed; the very value that was there if nothing changed. Raises NotValid."""
        if typed == self.text:
            return self.value
        if typed == "" and not self.required:
            return MISSING
        if self.kind == TEXT or (self.kind == CHOICE and typed in self.options):
            return typed
        try:
            found = json.loads(typed, parse_constant=_refused)
        except (ValueError, RecursionError):
            raise NotValid(f"{self.label}: write a {self.kind}, unlike {typed[:40]!r}.") from None
        if self.kind in (NUMBER, WHOLE) and (isinstance(found, bool) or not isinstance(found, (int, float))):
            raise NotValid(f"{self.label}: write a {self.kind}.")
        if self.kind == WHOLE and not isinstance(found, int):
            raise NotValid(f"{self.label}: write a whole number.")
        if self.kind == SWITCH and not isinstance(found, bool):
            raise NotValid(f"{self.label}: write true or false.")
        return found


def written(value: Any, kind: str) -> str:
    """Return a value as it is edited: a text as it is, anything else as JSON that a terminal may be sent."""
    if kind == TEXT and isinstance(value, str):
        return value
    text = json.dumps(value, ensure_ascii=False)
    return text if make_visible(text) == text else json.dumps(value).replace("\x7f", "\\u007f")


def fields_of(value: Any, schema: Mapping[str, Any]) -> list[Field]:
    """Return the fields for a value, in its order; those that its schema knows besides come after them."""
    found: list[Field] = []
    _walk(value, schema, schema, "", True, found)
    return found[:MOST]


def filled(value: Any, fields: Sequence[Field], typed: Mapping[str, str]) -> Any:
    """Return the value with what was typed, by pointer. Raises NotValid."""
    for field in fields:
        if field.pointer in typed:
            new = field.read(typed[field.pointer])
            if new is not field.value:
                value = json_pointer.replaced(value, field.pointer, new)
    return value


def _walk(
    value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], place: str, required: bool, fields: list[Field]
) -> None:
    resolved = json_pointer.resolve_references(schema, root)
    if isinstance(value, dict) and value and place.count("/") < DEEPEST:
        known: Mapping[str, Any] = resolved.get("properties") or {}
        needed = resolved.get("required") or ()
        for name in [*value, *(key for key in known if key not in value)]:
            inner = known.get(name) if isinstance(known.get(name), Mapping) else {}
            at = place + json_pointer.pointer_to(name)
            _walk(value.get(name, MISSING), inner or {}, root, at, name in needed, fields)
        return
    if value is MISSING and resolved.get("type") == "object":
        return  # an optional part that is not there: the browser's form makes those
    options = tuple(resolved["enum"]) if isinstance(resolved.get("enum"), list) else ()
    kind = CHOICE if options else _kind(value, resolved)
    label = str(
        resolved.get("title") or json_pointer.parts_of(place)[-1] if place else resolved.get("title") or "value"
    )
    fields.append(Field(place, label, kind, value, str(resolved.get("description") or ""), options, required))


def _kind(value: Any, schema: Mapping[str, Any]) -> str:
    types = schema.get("type")
    kind = types if isinstance(types, str) else ""
    if isinstance(value, str) and make_visible(value, lines=True) != value:
        return JSON  # in a text box it would be sent to the terminal as it is
    if isinstance(value, str) or (value is MISSING and kind == "string"):
        return TEXT if kind in ("string", "") else JSON
    if kind == "boolean":
        return SWITCH
    return {"integer": WHOLE, "number": NUMBER}.get(kind, JSON)


def _refused(constant: str) -> None:
    raise ValueError(constant)
