"""The fields of an action's arguments, from the form that the server draws of them. Pure.

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

CHOICE, JSON = "enum", "json"
WHOLES = ("group", "rows", "choice", "closed", "file")  # kinds that are edited as JSON
TYPED = {  # kind -> (what to write, its types); of any other kind a text is written
    "integer": ("a whole number", (int,)), "number": ("a number", (int, float)), "boolean": ("true or false", (bool,)),
    CHOICE: ("one of the choices", ()), JSON: ("JSON", ()),
}  # fmt: skip


class NotValid(ValueError):
    """Something typed does not fit; the sentence says what does."""


@dataclass(frozen=True)
class Field:
    """One value of the form. `part`: what the server's form says of it; `text`: the value as people edit it."""

    part: Mapping[str, Any]
    value: Any
    kind: str
    text: str
    choices: Mapping[str, Any]  # what can be chosen, by the text of its value

    def read(self, typed: str) -> Any:
        """Return the value that was typed; the very value that was there if nothing changed. Raises NotValid."""
        if typed == self.text:
            return self.value
        if typed in self.choices:
            return self.choices[typed]["value"]
        if typed == "" and (self.part["nullable"] or not self.part["required"]):
            return None if self.part["nullable"] else MISSING
        if self.kind not in TYPED or (self.kind == CHOICE and isinstance(self.value, str)):
            return typed
        words, types = TYPED[self.kind]
        try:
            found = json.loads(typed, parse_constant=_refused)
        except (ValueError, RecursionError):
            found = MISSING
        if found is MISSING or (types and type(found) not in types):
            raise NotValid(f"{self.part['label']}: write {words}, unlike {typed[:40]!r}.")
        return found


def written(value: Any, kind: str) -> str:
    """Return a value as it is edited: a text as it is, anything else as JSON that a terminal may be sent."""
    if kind != JSON and (value is None or isinstance(value, str)):
        return value or ""
    text = json.dumps(value, ensure_ascii=False)
    return text if make_visible(text) == text else json.dumps(value).replace("\x7f", "\\u007f")


def fields_of(part: Mapping[str, Any], value: Any) -> list[Field]:
    """List the fields of a part of the form of `value`, in the page's order."""
    old = json_pointer.get(value, part["pointer"])
    if part["parts"] and (isinstance(old, dict) or part["kind"] == "choice"):
        named = [{**inner, "label": inner["label"] or part["label"]} for inner in part["parts"]]
        return [field for inner in named for field in fields_of(inner, value)]
    # In a text box, what a terminal obeys would be sent to it as it is.
    plain = not isinstance(old, str) or make_visible(old, lines=True) == old
    kind = part["kind"] if plain and part["kind"] not in WHOLES else JSON
    text = "" if old is MISSING or part["kind"] == "secret" else written(old, kind)
    return [Field(part, old, kind, text, {written(choice["value"], kind): choice for choice in part["choices"]})]


def filled(value: Any, fields: Sequence[Field], typed: Mapping[str, str]) -> Any:
    """Return the value with what was typed, by pointer. Raises NotValid."""
    for field in fields:
        if (pointer := field.part["pointer"]) in typed:
            new = field.read(typed[pointer])
            if new is not field.value:
                value = json_pointer.replaced(value, pointer, new)
    return value


def _refused(constant: str) -> None:
    raise ValueError(constant)
