"""The place of a form's node: in the form's names, in the value as typed, and in the value as rendered."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from checkpoints.values import json_pointer

from . import names

CURRENCY = re.compile("[A-Z]{3}")


@dataclass(frozen=True, kw_only=True)
class FormPlace:
    """The place of one node."""

    path: str = ""  # in the form's names: an item keeps its number wherever it is moved
    pointer: str = ""  # in the value as it is typed
    was: str | None = ""  # in the value as it was rendered; None for what is new
    label: str = "Value"
    required: bool = True
    must: bool = True  # it cannot be left out: the whole, an item of a list, a chosen branch
    depth: int = 0
    shown: bool = True
    unit: str = ""  # the currency beside an amount
    quoted: bool = False  # somebody else wrote the schema's words, so `label` is the real name
    title: str = ""  # the name that the schema gives it

    def into(self, token: str, **changes: Any) -> FormPlace:
        """Return a place further in, at the name or number `token`."""
        step = names.encoded(token)
        was = None if self.was is None else json_pointer.join(self.was, token)
        given: dict[str, Any] = {
            "path": f"{self.path}/{step}",
            "pointer": json_pointer.join(self.pointer, token),
            "was": was,
            "depth": self.depth + 1,
            "shown": self.shown,
            "quoted": self.quoted,
        }
        return FormPlace(**{**given, **changes})


def unit_in(value: Any) -> str:
    """Return the currency code that an object holds beside its amounts; "" where there is none."""
    unit = value.get("currency") if isinstance(value, dict) else None
    return unit if isinstance(unit, str) and CURRENCY.fullmatch(unit) else ""
