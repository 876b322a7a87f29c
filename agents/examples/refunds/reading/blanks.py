"""Finds the characters of a text that show nothing, spaces or not, and measures how far they push words away."""

from __future__ import annotations

import re
import unicodedata

# Letters, signs and marks that draw nothing: fillers, the Braille pattern without a dot, a joiner of graphemes.
BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\U00016fe4\U0001d159")
WIDE = 40  # spaces in one line
_SELECTORS = re.compile("[\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")  # they choose a letter's form
_STRETCH = re.compile(r"\n(?: *\n){4,}")
_GAP = re.compile(r" {3,}")


def spaced(text: str) -> str:
    """Replace each character that looks blank by a space, but not line feeds. The length stays the same."""
    return text.translate({ord(char): " " for char in set(text) - {"\n"} if _blank(char)})


def blank_stretch(text: str) -> tuple[int, int]:
    """Count the blank lines with something behind them: (how many, where they begin); (0, len) without any.

    They are summed up: else a letter between two stretches of them would hide both. Up to three in a row count for
    nothing: an empty paragraph of a mail program makes so many.
    """
    found = list(_STRETCH.finditer(spaced(text).rstrip()))
    return sum(each.group().count("\n") - 1 for each in found), found[0].start() if found else len(text)


def far_apart(text: str) -> bool:
    """Tell whether spaces, wherever they stand in a line, may push its words or the next line out of sight.

    One or two in a row do not count: people type two after a sentence. Plain ones at a line's end do not count either.
    """
    lines = spaced(re.sub(r"(?<![ \t])[ \t]+(?=\n|\Z)", "", text)).split("\n")
    return any(sum(map(len, _GAP.findall(line))) > WIDE for line in lines)


def _blank(char: str) -> bool:
    seen = not char.isspace() and char not in BLANK_LETTERS and not _SELECTORS.match(char)
    return not seen or unicodedata.category(char).startswith("C")
