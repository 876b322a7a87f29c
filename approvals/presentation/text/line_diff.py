"""Compares two texts line by line, for people who read code. Pure.

Every line is there or counted: unchanged lines far from a change, blank lines in a long row, and whatever is more than
a page has room for. The end is always there, so that nothing is pushed out of sight.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import Literal

from checkpoints.values.list_alignment import shared_ends

COMPARED = 2_000  # lines a side that are compared; more are shown as replaced
AROUND = 3  # unchanged lines that are shown on either side of a change
BLANK = 4  # blank lines in a row that are shown
HEAD, TAIL = 300, 60  # lines that are shown in all

Kind = Literal["same", "gone", "put", "unchanged", "blank", "more"]


@dataclass(frozen=True)
class Line:
    """One line: in both texts, in the old or the new alone; or so many lines that are only counted."""

    kind: Kind
    text: str = ""
    old: int = 0  # its number in the old text, from 1
    new: int = 0
    count: int = 0
    of: str = ""  # of what is counted: same, gone or put

    @property
    def number(self) -> int:
        return self.new or self.old


def compared(before: str, after: str) -> list[Line]:
    """List the lines of both texts, with the changes marked."""
    old, new = split(before), split(after)
    return list(_clamped(_without_blanks(_near_changes(_all(old, new)))))


def counted(before: str, after: str) -> tuple[int, int]:
    """Return how many lines are new, and how many go."""
    kinds = [line.kind for line in _all(split(before), split(after))]
    return kinds.count("put"), kinds.count("gone")


def split(text: str) -> list[str]:
    """Return the lines; a last line break begins none. A carriage return stays unless each line ends with one."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if lines and all(line.endswith("\r") for line in lines):
        lines = [line[:-1] for line in lines]
    return lines


def unended(before: str, after: str) -> bool:
    """Tell whether one of the texts ends with a line break and the other does not."""
    return bool(before and after) and before.endswith("\n") != after.endswith("\n")


def _all(old: Sequence[str], new: Sequence[str]) -> Iterator[Line]:
    head, tail = shared_ends(old, new)
    yield from _same(old, range(head), 0)
    middle = old[head : len(old) - tail], new[head : len(new) - tail]
    whole = max(map(len, middle)) > COMPARED
    replaced = [("replace", 0, len(middle[0]), 0, len(middle[1]))]
    for verb, a, b, c, d in replaced if whole else SequenceMatcher(None, *middle).get_opcodes():
        if verb == "equal":
            yield from _same(old, range(head + a, head + b), c - a)
        else:
            yield from (Line("gone", old[at], old=at + 1) for at in range(head + a, head + b))
            yield from (Line("put", new[at], new=at + 1) for at in range(head + c, head + d))
    yield from _same(old, range(len(old) - tail, len(old)), len(new) - len(old))


def _same(old: Sequence[str], places: range, ahead: int) -> Iterator[Line]:
    return (Line("same", old[at], old=at + 1, new=at + ahead + 1) for at in places)


def _near_changes(lines: Iterator[Line]) -> Iterator[Line]:
    runs = [(kind, list(run)) for kind, run in groupby(lines, key=lambda line: line.kind == "same")]
    for number, (unchanged, run) in enumerate(runs):
        before, after = (AROUND if number else 0), (AROUND if number < len(runs) - 1 else 0)
        if unchanged and len(run) > before + after + 1:
            yield from run[:before]
            yield Line("unchanged", count=len(run) - before - after, of="same")
            yield from run[len(run) - after :]
        else:
            yield from run


def _without_blanks(lines: Iterator[Line]) -> Iterator[Line]:
    for (kind, blank), run in groupby(lines, key=lambda line: (line.kind, not line.text.strip() and not line.count)):
        found = list(run)
        if blank and len(found) > BLANK:
            yield Line("blank", count=len(found), of=kind)
        else:
            yield from found


def _clamped(lines: Iterator[Line]) -> Iterator[Line]:
    found = list(lines)
    hidden = found[HEAD : len(found) - TAIL]
    if not hidden:
        yield from found
        return
    yield from found[:HEAD]
    yield Line("more", count=sum(line.count or 1 for line in hidden))
    yield from found[len(found) - TAIL :]
