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

from .safe import as_it_runs, make_visible

PLAIN, BOLD, SOFT, GO, STOP, HOLD, PEN, QUOTE = "plain", "bold", "soft", "go", "stop", "hold", "pen", "quote"
ANSI = {BOLD: "1", SOFT: "2", GO: "32", STOP: "31", HOLD: "33", PEN: "34", QUOTE: "3"}


@dataclass(frozen=True)
class Span:
    """Some words in one style. The text is made safe here, so that no part of a screen forgets it."""

    text: str
    style: str = PLAIN

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", make_visible(self.text))


Line = tuple[Span, ...]


def make_line(*parts: Span | str) -> Line:
    """Return a line; plain strings are the product's own words."""
    return tuple(part if isinstance(part, Span) else Span(part) for part in parts)


def make_span(text: object, style: str = PLAIN) -> Span:
    """Return somebody's words on one line."""
    return Span(str(text), style)


def quote_text(text: object, *, indent: str = "", style: str = QUOTE) -> list[Line]:
    """Return somebody's words, a line for each of theirs, behind a bar."""
    return [
        make_line(f"{indent}│ ", Span(text_line, style)) for text_line in make_visible(text, lines=True).split("\n")
    ]


def value_span(value: Any, style: str = PLAIN) -> Span:
    """Return a JSON value on one line, as it would run: a text as it is, anything else as JSON."""
    return make_span(
        as_it_runs(value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)), style
    )


def render_lines(lines: Iterable[Line], *, colour: bool = False) -> str:
    """Return the lines as text; with `colour`, with the escape sequences of this module and no others."""
    return "".join("".join(_render_span(span, colour) for span in line) + "\n" for line in lines)


def write_lines(lines: Iterable[Line]) -> None:
    """Write the lines to stdout, in colour where that is a terminal (https://no-color.org)."""
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    sys.stdout.write(render_lines(lines, colour=colour))


def _render_span(span: Span, colour: bool) -> str:
    return f"\x1b[{ANSI[span.style]}m{span.text}\x1b[0m" if colour and span.style in ANSI else span.text
