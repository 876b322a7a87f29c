"""Draws two texts line by line. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Any

from .. import json_pointer
from .lines import GO, HOLD, PLAIN, SOFT, STOP, Line, Span, make_line, make_span
from .safe import spell_unseen

DRAWN = 1000  # lines of a text at most
COST = 2_000_000  # pairs of equal lines, times lines: more take longer than people wait, and are drawn as replaced


def draw_diff(drawing: Mapping[str, Any], arguments: Any, mark: str = "") -> Iterator[Line]:
    """Yield what an edit changes, line by line; nothing for what is no edit. The exact texts are shown beside it.

    `mark`: who says what was there, where that is only what a program says.
    """
    old = json_pointer.get(arguments, drawing["before"]) if drawing.get("before") else drawing.get("was", "")
    new = json_pointer.get(arguments, drawing["at"])
    if drawing["kind"] != "diff" or not isinstance(old, str) or not isinstance(new, str):
        return
    was, now = old.split("\n"), new.split("\n")
    if max(len(was), len(now)) > DRAWN:
        return
    if mark or drawing.get("was"):
        yield make_line(make_span(f"    {mark or 'compared with what the agent found there when it asked'}:", SOFT))
    shown = 0  # lines of the new text
    for group in _compared(was, now).get_grouped_opcodes():
        yield from _folded(group[0][3] - shown)
        for verb, a, b, c, d in group:
            old_style, new_style = ("", PLAIN) if verb == "equal" else (STOP, GO)
            yield from (make_line("    ", Span(f"-{spell_unseen(text)}", old_style)) for text in was[a:b] if old_style)
            sign = "+" if old_style else " "
            yield from (make_line("    ", Span(f"{sign}{spell_unseen(text)}", new_style)) for text in now[c:d])
        shown = group[-1][4]
    yield from _folded(len(now) - shown)


def _compared(was: Sequence[str], now: Sequence[str]) -> SequenceMatcher[object]:
    """Compare what lies between the ends that both texts share. Lines that occur often would cost cubic time."""
    head = _shared(was, now)
    tail = _shared(was[head:][::-1], now[head:][::-1])
    old: Sequence[object] = was[head : len(was) - tail]
    new: Sequence[object] = now[head : len(now) - tail]
    often, lines = Counter(new), max(len(old), len(new))
    if (sum(often[text] for text in old) + lines) * lines > COST:
        old, new = [object() for _ in old], [object() for _ in new]  # none is like another
    start, end = range(head), range(-tail, 0)
    return SequenceMatcher(None, [*start, *old, *end], [*start, *new, *end], autojunk=False)


def _shared(was: Sequence[str], now: Sequence[str]) -> int:
    """Count the lines with which both texts begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(was, now, strict=False)))


def _folded(count: int) -> Iterator[Line]:
    """Yield the mark of lines that are in both texts: they are part of what runs, and stand whole below."""
    if count:
        words = f"{count} lines are in both texts" if count > 1 else "1 line is in both texts"
        yield make_line(Span(f"    … {words}; the new text is whole below", HOLD))
