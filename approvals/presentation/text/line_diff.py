"""Compares two texts line by line, for people who read code. Pure.

Every line is there or counted: unchanged lines far from a change, blank lines in a long row, and whatever is more than
a page has room for. What is counted carries its text, since all of the new text runs, whatever it is compared with. The
end is always there, so that nothing is pushed out of sight.

It also renders the difference of two long texts: removed parts struck out, new parts underlined, the rest folded.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import count, groupby
from typing import Literal

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from approvals.forms import words
from checkpoints.values.patch import shared_ends

from . import untrusted
from .untrusted import icon

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
    hunk: int = 0  # the number of its change, from 1; 0 for an unchanged line
    folded: str = field(default="", compare=False)  # of what is counted: the text that goes with the new one

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


def without(before: str, after: str, dropped: Container[int]) -> str:
    """Return the new text with some of its changes, by their numbers in `compared`, left as the old text has them."""
    old, new = _raw(before), _raw(after)
    lines: list[str] = []
    for verb, a, b, c, d, number in _changes(split(before), split(after)):
        lines += old[a:b] if verb != "equal" and number in dropped else new[c:d]
    whole = [line if line.endswith("\n") else f"{line}\n" for line in lines[:-1]]  # a text's last line may have no end
    return "".join([*whole, *lines[-1:]])


def _raw(text: str) -> list[str]:
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _changes(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, int, int, int, int, int]]:
    """Yield (verb, place in the old lines, its end, place in the new, its end, number of the change from 1)."""
    head, tail = shared_ends(old, new)
    yield "equal", 0, head, 0, head, 0
    middle = old[head : len(old) - tail], new[head : len(new) - tail]
    whole = max(map(len, middle)) > COMPARED
    replaced = [("replace", 0, len(middle[0]), 0, len(middle[1]))] if any(middle) else []
    numbers = count(1)
    for verb, a, b, c, d in replaced if whole else SequenceMatcher(None, *middle).get_opcodes():
        yield verb, head + a, head + b, head + c, head + d, 0 if verb == "equal" else next(numbers)
    yield "equal", len(old) - tail, len(old), len(new) - tail, len(new), 0


def _all(old: Sequence[str], new: Sequence[str]) -> Iterator[Line]:
    for verb, a, b, c, d, number in _changes(old, new):
        if verb == "equal":
            yield from (Line("same", old[at], old=at + 1, new=at + c - a + 1) for at in range(a, b))
        else:
            yield from (Line("gone", old[at], old=at + 1, hunk=number) for at in range(a, b))
            yield from (Line("put", new[at], new=at + 1, hunk=number) for at in range(c, d))


def _near_changes(lines: Iterator[Line]) -> Iterator[Line]:
    runs = [(kind, list(run)) for kind, run in groupby(lines, key=lambda line: line.kind == "same")]
    for number, (unchanged, run) in enumerate(runs):
        before, after = (AROUND if number else 0), (AROUND if number < len(runs) - 1 else 0)
        if unchanged and len(run) > before + after + 1:
            yield from run[:before]
            inside = run[before : len(run) - after]
            yield Line("unchanged", count=len(inside), of="same", folded=_text(inside))
            yield from run[len(run) - after :]
        else:
            yield from run


def _without_blanks(lines: Iterator[Line]) -> Iterator[Line]:
    for (kind, blank), run in groupby(lines, key=lambda line: (line.kind, not line.text.strip() and not line.count)):
        found = list(run)
        if blank and len(found) > BLANK:
            text = _text(found)
            yield Line("blank", count=len(found), of=kind, hunk=found[0].hunk, folded=text if text.strip("\n") else "")
        else:
            yield from found


def _clamped(lines: Iterator[Line]) -> Iterator[Line]:
    found = list(lines)
    hidden = found[HEAD : len(found) - TAIL]
    if not hidden:
        yield from found
        return
    yield from found[:HEAD]
    yield Line("more", count=sum(line.count or 1 for line in hidden), folded=_text(hidden))
    yield from found[len(found) - TAIL :]


def _text(lines: Sequence[Line]) -> str:
    """Return the lines of the new text among these."""
    return "\n".join(line.folded if line.count else line.text for line in lines if "gone" not in (line.kind, line.of))


DRAWN = 300  # stretches drawn of one text; further ones are counted


def render(before: str, after: str) -> SafeString:
    """Render the new text with its removed and added parts marked; what is folded of it opens in place, since it runs.

    Past `DRAWN` stretches the rest of the new text stands folded as it is.
    """
    found = words.stretches(before, after)
    drawn = format_html_join("", "{}", ((_html(each),) for each in found[:DRAWN]))
    more = len(found) - DRAWN
    if more <= 0:
        return drawn
    rest = "".join(each.text + each.cut + each.tail for each in found[DRAWN:] if each.kind != "gone")
    return format_html("{}{}", drawn, _folded(f"{more:,} more differences", rest))


def _html(each: words.Stretch) -> SafeString:
    text = untrusted.render(each.text, value=True, part=True)
    if each.kind == "gone":
        return format_html("<del>{}</del>", text)
    if each.kind == "put":
        return format_html("<ins>{}</ins>", text)
    if not each.cut:
        return text
    label = f"{len(each.cut):,} characters as they were"
    return format_html("{}{}{}", text, _folded(label, each.cut), untrusted.render(each.tail, value=True, part=True))


def _folded(label: str, text: str) -> SafeString:
    return format_html(
        '<details class="more"><summary class="collapsed">{}<b>{}</b></summary>{}</details>',
        icon("fold", "s"), label, untrusted.render(text, value=True, part=True),
    )  # fmt: skip
