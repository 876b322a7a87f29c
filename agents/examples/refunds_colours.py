"""Colours in the ways that mails write them, and whether letters can be told from what is behind them. Pure.

Which of several declarations holds takes a browser, so a place has a set of colours that it may have. None stands for
a colour that nobody can tell: an image, a gradient, transparency, a name that is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

Colours = frozenset[tuple[int, int, int]]

NEAR = 60  # of three channels of 255 together: colours that nobody tells apart
BLACK: Colours = frozenset([(0, 0, 0)])
PAPER: Colours = frozenset([(255, 255, 255)])
# The names of HTML 4, and those that mail programs write for a system's colours.
_NAMED = {
    "black": (0, 0, 0), "silver": (192, 192, 192), "gray": (128, 128, 128), "grey": (128, 128, 128),
    "white": (255, 255, 255), "maroon": (128, 0, 0), "red": (255, 0, 0), "purple": (128, 0, 128),
    "fuchsia": (255, 0, 255), "green": (0, 128, 0), "lime": (0, 255, 0), "olive": (128, 128, 0),
    "yellow": (255, 255, 0), "navy": (0, 0, 128), "blue": (0, 0, 255), "teal": (0, 128, 128),
    "aqua": (0, 255, 255), "orange": (255, 165, 0), "windowtext": (0, 0, 0), "window": (255, 255, 255),
}  # fmt: skip
_AS_AROUND = ("", "inherit", "currentcolor", "none", "unset")
SEE_THROUGH = ("transparent", "initial")  # backgrounds that leave what is behind


def colours_of(said: Iterable[str], around: Colours | None) -> Colours | None:
    """The colours that one of these values may give; those around where none does."""
    found: set[tuple[int, int, int]] = set()
    for value in said:
        made = _colour(value.strip().lower(), around)
        if made is None:
            return None
        found |= made
    return frozenset(found) if found else around


def told_apart(letters: Colours | None, behind: Colours | None) -> bool:
    """Whether letters of any of these colours are seen on any of those."""
    if letters is None or behind is None:
        return False
    return all(sum(abs(a - b) for a, b in zip(one, other, strict=True)) > NEAR for one in letters for other in behind)


def _colour(value: str, around: Colours | None) -> Colours | None:
    """One value: a background may have more words after its colour, which may not bring an image."""
    if value in _AS_AROUND:
        return around
    if "(" in value.removeprefix("rgba(").removeprefix("rgb(") or "image" in value:
        return None
    if found := re.match(r"rgba?\(\s*(\d{1,3})[\s,]+(\d{1,3})[\s,]+(\d{1,3})\s*(?:[,/]\s*1(?:\.0*)?\s*)?\)", value):
        return frozenset([(min(int(found[1]), 255), min(int(found[2]), 255), min(int(found[3]), 255))])
    first = value.split()[0]
    if first in _NAMED:
        return frozenset([_NAMED[first]])
    if found := re.fullmatch(r"#?([0-9a-f]{3}|[0-9a-f]{6})", first):
        digits = "".join(each * 2 for each in found[1]) if len(found[1]) == 3 else found[1]
        return frozenset([(int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:], 16))])
    return None
