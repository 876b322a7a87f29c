"""Measures a stranger's text: characters and stretches that show nothing, which may keep words out of sight. Pure."""

from __future__ import annotations

import re
import unicodedata

# Letters, signs and marks that draw nothing: fillers, the Braille pattern without a dot, a joiner of graphemes.
BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\U00016fe4\U0001d159")
WIDE = 40  # spaces in one line
_SELECTORS = re.compile("[\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")  # they choose a letter's form
_STRETCH = re.compile(r"\n(?: *\n){4,}")


def one_line(text: str, limit: int = 100) -> str:
    """Return `text` fit for a title: one line, nothing invisible, cut at `limit` characters."""
    seen = "".join(" " if unicodedata.category(char).startswith("C") else char for char in text)
    line = " ".join(seen.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def count_invisible(text: str) -> int:
    """Count the characters that cannot be seen: controls, format characters, private use, letters that draw nothing.

    Joiners in emoji do not count.
    """
    count, before = 0, ""
    for char in text:
        kind = unicodedata.category(char)
        if kind in ("Cf", "Co") or char in BLANK_LETTERS or (kind == "Cc" and char not in "\n\r\t"):
            joins = char == "\u200d" and (before == "\ufe0f" or unicodedata.category(before) in ("So", "Sk"))
            count += not joins
        before = char
    return count


def blank_stretch(text: str) -> tuple[int, int]:
    """Count the blank lines with something behind them: (how many, where they begin); (0, len) without any.

    They are summed up: else a letter between two stretches of them would hide both. Up to three in a row count for
    nothing: an empty paragraph of a mail program makes so many.
    """
    found = list(_STRETCH.finditer(_spaced(text).rstrip()))
    return sum(each.group().count("\n") - 1 for each in found), found[0].start() if found else len(text)


def is_far_apart(text: str) -> bool:
    """Tell whether spaces in a line, more than two in a row, may push its words or the next line out of sight."""
    lines = _spaced(re.sub(r"(?<![ \t])[ \t]+(?=\n|\Z)", "", text)).split("\n")
    return any(sum(map(len, re.findall(r" {3,}", line))) > WIDE for line in lines)


def _spaced(text: str) -> str:
    """Replace each character that looks blank by a space, but not line feeds. The length stays the same."""
    return text.translate({ord(char): " " for char in set(text) - {"\n"} if _is_blank(char)})


def _is_blank(char: str) -> bool:
    drawn = not char.isspace() and char not in BLANK_LETTERS and not _SELECTORS.match(char)
    return not drawn or unicodedata.category(char).startswith("C")
