"""Lines of words with a meaning, which a command writes plainly and the inbox draws in colour. Pure.

Every word becomes a `Span`, which makes it safe: a terminal obeys what it is sent. An escape sequence moves the cursor,
rewrites lines above, sets the title or the clipboard; a bidi control turns "100" and "001" around; a character without
a shape hides words. So each of them is written as its code point, `<U+001B>`, and never sent.
"""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TextIO

from holdpoint.unseen_characters import PILE, find_unseen

PLAIN, BOLD, SOFT, GO, STOP, HOLD, PEN, QUOTE = "plain", "bold", "soft", "go", "stop", "hold", "pen", "quote"
ANSI = {BOLD: "1", SOFT: "2", GO: "32", STOP: "31", HOLD: "33", PEN: "34", QUOTE: "3"}


@dataclass(frozen=True, init=False)
class Span:
    """Some words in one style. The text is made safe here, so that no part of a screen forgets it."""

    text: str
    style: str

    def __init__(self, text: object, style: str = PLAIN) -> None:
        object.__setattr__(self, "text", make_visible(text))
        object.__setattr__(self, "style", style)


Line = tuple[Span, ...]


def make_line(*parts: Span | str) -> Line:
    """Return a line; plain strings are the product's own words."""
    return tuple(part if isinstance(part, Span) else Span(part) for part in parts)


def quote_text(text: object, *, indent: str = "", style: str = QUOTE) -> list[Line]:
    """Return somebody's words, a line for each of theirs, behind a bar."""
    return [
        make_line(f"{indent}│ ", Span(text_line, style)) for text_line in make_visible(text, lines=True).split("\n")
    ]


def value_span(value: Any, style: str = PLAIN) -> Span:
    """Return a JSON value on one line, as it would run: a text as it is, anything else as JSON."""
    return Span(as_it_runs(value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)), style)


def render_lines(lines: Iterable[Line], *, colour: bool = False) -> str:
    """Return the lines as text; with `colour`, with the escape sequences of this module and no others."""

    def render(span: Span) -> str:
        return f"\x1b[{ANSI[span.style]}m{span.text}\x1b[0m" if colour and span.style in ANSI else span.text

    return "".join("".join(map(render, line)) + "\n" for line in lines)


def write_lines(lines: Iterable[Line], to: TextIO | None = None) -> None:
    """Write the lines, to stdout by default; in colour where that is a terminal (https://no-color.org)."""
    to = to or sys.stdout
    colour = to.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    to.write(render_lines(lines, colour=colour))


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
