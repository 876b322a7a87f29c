"""Lines of words with a meaning, which a command writes plainly and the inbox draws in colour. Pure.

Every word becomes a `Span`, which makes it safe, so that a terminal never obeys an agent.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .safe import as_it_runs, visible

PLAIN, BOLD, SOFT, GO, STOP, HOLD, PEN, QUOTE = "plain", "bold", "soft", "go", "stop", "hold", "pen", "quote"
ANSI = {BOLD: "1", SOFT: "2", GO: "32", STOP: "31", HOLD: "33", PEN: "34", QUOTE: "3"}


@dataclass(frozen=True)
class Span:
    """Some words in one style. The text is made safe here, so that no part of a screen forgets it."""

    text: str
    style: str = PLAIN

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", visible(self.text))


Line = tuple[Span, ...]


def line(*parts: Span | str) -> Line:
    """Return a line; plain strings are the product's own words."""
    return tuple(each if isinstance(each, Span) else Span(each) for each in parts)


def said(text: object, style: str = PLAIN) -> Span:
    """Return somebody's words on one line."""
    return Span(str(text), style)


def quoted(text: object, *, indent: str = "", style: str = QUOTE) -> list[Line]:
    """Return somebody's words, a line for each of theirs, behind a bar."""
    return [line(f"{indent}│ ", Span(each, style)) for each in visible(text, lines=True).split("\n")]


def value(found: Any, style: str = PLAIN) -> Span:
    """Return a JSON value on one line, as it would run: a text as it is, anything else as JSON."""
    return said(as_it_runs(found if isinstance(found, str) and found else json.dumps(found, ensure_ascii=False)), style)


def plain(lines: Iterable[Line], *, colour: bool = False) -> str:
    """Return the lines as text; with `colour`, with the escape sequences of this module and no others."""
    return "".join("".join(_drawn(span, colour) for span in each) + "\n" for each in lines)


def write(lines: Iterable[Line]) -> None:
    """Write the lines to stdout, in colour where that is a terminal (https://no-color.org)."""
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    sys.stdout.write(plain(lines, colour=colour))


def _drawn(span: Span, colour: bool) -> str:
    return f"\x1b[{ANSI[span.style]}m{span.text}\x1b[0m" if colour and span.style in ANSI else span.text
