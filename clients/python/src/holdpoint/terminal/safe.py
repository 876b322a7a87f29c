"""Makes text of agents and other people safe to show in a terminal. Pure.

A terminal obeys what it is sent: an escape sequence moves the cursor, rewrites lines above, sets the title or the
clipboard; a bidi control turns "100" and "001" around; a character without a shape hides words. So each of them is
written as its code point, `<U+001B>`, and never sent.
"""

from __future__ import annotations

import unicodedata

from .unseen_characters import PILE, find_unseen


def make_visible(text: object, *, lines: bool = False) -> str:
    """Return the text with everything that is not seen, or that moves what is seen, as code points.

    Tabs, and spaces that are ordinary in prose, become plain spaces. Line breaks stay where `lines` is set; otherwise
    they become ` ⏎ `.
    """
    shown: list[str] = []
    marks = 0
    for character in spell_unseen(str(text).replace("\r\n", "\n"), value=False):
        kind = unicodedata.category(character)
        marks = marks + 1 if kind in ("Mn", "Me") else 0
        if character == "\n":
            shown.append("\n" if lines else " ⏎ ")
        elif character == "\t" or kind == "Zs":
            shown.append(" ")
        else:
            shown.append(_point(character) if marks > PILE else character)
    return "".join(shown)


def as_it_runs(text: str) -> str:
    """Return the text of a value with its odd spaces, and the blanks at its ends, as code points: they run with it."""
    inside = text.strip()
    first, _, last = text.partition(inside) if inside else (text, "", "")
    ends = (
        "".join(character if character in "\r\n" else _point(character) for character in blanks)
        for blanks in (first, last)
    )
    return spell_unseen(inside).join(ends)


def spell_unseen(text: str, *, value: bool = True) -> str:
    """Return the text, or a part of a value, with what is not seen in it as code points."""
    parts, at = [], 0
    for start, end in find_unseen(text, value=value):
        parts += [text[at:start], *map(_point, text[start:end])]
        at = end
    return "".join([*parts, text[at:]])


def _point(character: str) -> str:
    return f"<U+{ord(character):04X}>"


def one_line(text: object, width: int) -> str:
    """Return the text on one line of at most so many columns, cut with `…`."""
    plain = make_visible(text)
    if count_columns(plain) <= width:
        return plain
    while plain and count_columns(plain) > width - 1:
        plain = plain[:-1]
    return plain + "…"


def count_columns(text: str) -> int:
    """Return how many columns a terminal takes for the text."""
    return sum(_width(character) for character in text)


def pad_text(text: str, width: int) -> str:
    """Return the text, filled up to so many columns."""
    return text + " " * max(width - count_columns(text), 0)


def _width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
