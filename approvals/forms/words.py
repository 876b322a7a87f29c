"""Compares two long texts word by word. Pure.

Words, line breaks and stretches of blanks are compared as wholes, between the texts' common beginning and end. Past
`WORDS` of them a side the lines are compared first and only lines that differ are split into words, so that the cost
grows with the changed lines and not with 60,000 characters.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from checkpoints.values.patch import shared_ends

WORDS = 600  # a side that are compared word by word at once
LINES = 5_000
EFFORT = 2_000_000  # pairs of words that are compared in all; the rest is compared line by line
AROUND = 60  # characters of what stayed that are kept on either side of a change
_TOKEN = re.compile(r"\n|[^\S\n]+|\w+|[^\w\s]")

Kind = Literal["same", "gone", "put"]


@dataclass(frozen=True)
class Stretch:
    """One stretch of text: in both, in the old alone, or in the new alone. All of it is `text`, `cut` and `tail`."""

    kind: Kind
    text: str
    cut: str = ""  # the middle of unchanged text, which is far from any change
    tail: str = ""


def stretches(before: str, after: str) -> list[Stretch]:
    """List the differences in order, with the text around them; unchanged text further away is cut out."""
    found = _merged(_compared(_TOKEN.findall(before), _TOKEN.findall(after)))
    return [_shortened(stretch, first=not at, last=at == len(found) - 1) for at, stretch in enumerate(found)]


def _compared(old: Sequence[str], new: Sequence[str]) -> Iterator[Stretch]:
    head, tail = shared_ends(old, new)
    yield Stretch("same", "".join(old[:head]))
    middle = old[head : len(old) - tail], new[head : len(new) - tail]
    if len(middle[0]) > WORDS or len(middle[1]) > WORDS:
        yield from _by_lines("".join(middle[0]), "".join(middle[1]))
    else:
        yield from _matched(*middle)
    yield Stretch("same", "".join(old[len(old) - tail :]))


def _by_lines(old: str, new: str) -> Iterator[Stretch]:
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    if len(before) > LINES or len(after) > LINES:
        yield from (Stretch("gone", old), Stretch("put", new))
        return
    left = EFFORT
    for verb, a, b, c, d in SequenceMatcher(None, before, after).get_opcodes():
        if verb == "equal":
            yield Stretch("same", "".join(before[a:b]))
        elif b - a == d - c:  # as many lines as before: each is compared with its counterpart
            for word, other in zip(before[a:b], after[c:d], strict=True):
                left = yield from _within(word, other, left)
        else:
            left = yield from _within("".join(before[a:b]), "".join(after[c:d]), left)


def _within(gone: str, put: str, budget: int) -> Generator[Stretch, None, int]:
    """Yield the words that differ, where that costs no more than `budget` comparisons; return how many are left."""
    old, new = _TOKEN.findall(gone), _TOKEN.findall(put)
    cost = len(old) * len(new)
    if max(len(old), len(new)) > WORDS or cost > budget:
        yield from (Stretch("gone", gone), Stretch("put", put))
        return budget
    yield from _matched(old, new)
    return budget - cost


def _matched(old: Sequence[str], new: Sequence[str]) -> Iterator[Stretch]:
    for verb, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if verb == "equal":
            yield Stretch("same", "".join(old[a:b]))
        else:
            yield from (Stretch("gone", "".join(old[a:b])), Stretch("put", "".join(new[c:d])))


def _merged(parts: Iterator[Stretch]) -> list[Stretch]:
    """Join neighbours of one kind; a lone blank between two changes belongs to both."""
    merged: list[Stretch] = []
    for stretch in parts:
        if not stretch.text:
            continue
        if merged and merged[-1].kind == stretch.kind:
            merged[-1] = Stretch(stretch.kind, merged[-1].text + stretch.text)
        else:
            merged.append(stretch)
    return merged


def _shortened(stretch: Stretch, *, first: bool, last: bool) -> Stretch:
    """Cut the middle of unchanged text: keep its end where it comes first, its beginning where it comes last."""
    keep = AROUND if first or last else AROUND * 2
    if stretch.kind != "same" or len(stretch.text) <= keep + 20:
        return stretch
    head, tail = (0 if first else AROUND), (0 if last else AROUND)
    end = len(stretch.text) - tail
    return Stretch("same", stretch.text[:head], stretch.text[head:end], stretch.text[end:])
