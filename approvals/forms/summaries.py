"""Summarises a value in a few words, for the heading of a folded part. Pure; the words come from the payload."""

from __future__ import annotations

from typing import Any

from approvals.english import count_of

from .nodes import MISSING

LONGEST = 80


def summarise_value(value: Any) -> str:
    """Summarise a value: an object's first plain values, the beginning of a text, or how many items a list has."""
    if value is MISSING:
        return "nothing yet"
    if isinstance(value, dict):
        plain = [
            _words(item) for item in value.values() if not isinstance(item, (dict, list)) and item not in ("", None)
        ]
        return _cut(", ".join(plain[:3])) or count_of(len(value), "field")
    if isinstance(value, list):
        return count_of(len(value), "item")
    return _cut(_words(value))


def _words(value: Any) -> str:
    if isinstance(value, str):
        return value[: LONGEST * 2]
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 300:
        return "a very long number"
    named = {None: "none", True: "yes", False: "no"}
    return named[value] if value is None or isinstance(value, bool) else repr(value)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
