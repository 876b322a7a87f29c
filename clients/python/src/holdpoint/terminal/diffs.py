"""Draws two texts line by line. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from . import pointers
from .lines import GO, HOLD, PLAIN, SOFT, STOP, Line, Span, line, said

COMPARED = 1000  # lines of a text at most: comparing takes longer than people wait


def draw_diff(drawing: Mapping[str, Any], arguments: Any, mark: str = "") -> Iterator[Line]:
    """Yield what an edit changes, line by line; nothing for what is no edit. The exact texts are shown beside it.

    `mark`: who says what was there, where that is only what a program says.
    """
    old = pointers.get(arguments, drawing["before"]) if drawing.get("before") else drawing.get("was", "")
    new = pointers.get(arguments, drawing["at"])
    if drawing["kind"] != "diff" or not isinstance(old, str) or not isinstance(new, str):
        return
    was, now = old.split("\n"), new.split("\n")
    if max(len(was), len(now)) > COMPARED:
        return
    if mark or drawing.get("was"):
        yield line(said(f"    {mark or 'compared with what the agent found there when it asked'}:", SOFT))
    shown = 0  # lines of the new text
    for group in difflib.SequenceMatcher(None, was, now, autojunk=False).get_grouped_opcodes():
        yield from _folded(group[0][3] - shown)
        for verb, a, b, c, d in group:
            old_style, new_style = ("", PLAIN) if verb == "equal" else (STOP, GO)
            yield from (line("    ", Span(f"-{text}", old_style)) for text in was[a:b] if old_style)
            yield from (line("    ", Span(f"{'+' if old_style else ' '}{text}", new_style)) for text in now[c:d])
        shown = group[-1][4]
    yield from _folded(len(now) - shown)


def _folded(count: int) -> Iterator[Line]:
    """Yield the mark of lines that are in both texts: they are part of what runs, and stand whole below."""
    if count:
        words = f"{count} lines are in both texts" if count > 1 else "1 line is in both texts"
        yield line(Span(f"    … {words}; the new text is whole below", HOLD))
