"""Names characters that a reader does not see, for the badges that stand in their place."""

from __future__ import annotations

import unicodedata

from approvals.english import count_of

NAMES = {
    "\u200b": "zero-width space",
    "\u200c": "zero-width non-joiner",
    "\u200d": "zero-width joiner",
    "\u202a": "left-to-right embedding",
    "\u202b": "right-to-left embedding",
    "\u202c": "end of direction",
    "\u202d": "left-to-right override",
    "\u202e": "right-to-left override",
    "\ufeff": "byte order mark",
    "\t": "tab",
    "\r": "carriage return",
    "\x00": "null",
    "\x1b": "escape",
}


def hidden_name(char: str) -> str:
    """Name a hidden character: `U+202E right-to-left override`."""
    name = NAMES.get(char) or unicodedata.name(char, "").lower()
    if not name:
        kinds = {"Cc": "control character", "Co": "private character"}
        name = kinds.get(unicodedata.category(char), "no character")
    return f"U+{ord(char):04X} {name}"


def repeated_name(char: str, count: int) -> str:
    """Name a run of one character: `U+00A0 no-break space, 3 times`."""
    return hidden_name(char) if count == 1 else f"{hidden_name(char)}, {count:,} times"


def marks_name(marks: str) -> str:
    """Name combining marks: `30 combining marks`; a single one by its own name."""
    return hidden_name(marks) if len(marks) == 1 else count_of(len(marks), "combining mark")
