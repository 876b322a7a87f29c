"""Makes text of agents and other people safe to show in a terminal. Pure.

A terminal obeys what it is sent: an escape sequence moves the cursor, rewrites lines above, sets the title or the
clipboard; a bidi control turns "100" and "001" around; a character without a shape hides words. So each of them is
written as its code point, `<U+001B>`, and never sent.
"""

from __future__ import annotations

import unicodedata

JOINER, EMOJI_STYLE = "\u200d", "\ufe0f"
# They draw nothing, though Unicode calls them letters, marks or symbols.
BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
MARKS = 3  # of one letter; more pile up over the lines around it


def visible(text: object, *, lines: bool = False) -> str:
    """Return the text with everything that is not seen, or that moves what is seen, as code points.

    Blanks of any kind become spaces, but for odd ones at the ends, which would look like none. Line breaks stay where
    `lines` is set; otherwise they become ` ⏎ `.
    """
    told: list[str] = []
    marks = 0
    whole = str(text).replace("\r\n", "\n")
    first, last = len(whole) - len(whole.lstrip()), len(whole.rstrip())
    for at, character in enumerate(whole):
        kind = unicodedata.category(character)
        marks = marks + 1 if kind in ("Mn", "Me") else 0
        if character == "\n":
            told.append("\n" if lines else " ⏎ ")
        elif character in " \t" or (kind == "Zs" and first <= at < last):
            told.append(" ")
        elif kind == "Zs" or marks > MARKS or (_is_unseen(character, kind) and not _is_in_emoji(whole, at)):
            told.append(f"<U+{ord(character):04X}>")
        else:
            told.append(character)
    return "".join(told)


def as_it_runs(text: str) -> str:
    """Return the text of a value with the blanks at its ends as code points: they run with it."""
    inside = text.strip()
    first, _, last = text.partition(inside) if inside else (text, "", "")
    return "".join([_pointed(first), inside, _pointed(last)])


def _pointed(blanks: str) -> str:
    return "".join(each if each in "\r\n" else f"<U+{ord(each):04X}>" for each in blanks)


def one_line(text: object, width: int) -> str:
    """Return the text on one line of at most so many columns, cut with `…`."""
    plain = visible(text)
    if columns(plain) <= width:
        return plain
    while plain and columns(plain) > width - 1:
        plain = plain[:-1]
    return plain + "…"


def columns(text: str) -> int:
    """Return how many columns a terminal takes for the text."""
    return sum(_width(each) for each in text)


def padded(text: str, width: int) -> str:
    """Return the text, filled up to so many columns."""
    return text + " " * max(width - columns(text), 0)


def _width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _is_unseen(character: str, kind: str) -> bool:
    """Tell whether it draws nothing; selectors of variants too, since data can be hidden in them."""
    if kind in HIDDEN or character in BLANK:
        return True
    return "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"


def _is_in_emoji(text: str, at: int) -> bool:
    """Tell whether it joins two pictures, or asks for the picture of the symbol before it."""
    before = unicodedata.category(text[at - 1]) in ("So", "Sk") if at else False
    if text[at] == EMOJI_STYLE:
        return before
    after = at + 1 < len(text) and unicodedata.category(text[at + 1]) == "So"
    joined = at > 1 and text[at - 1] == EMOJI_STYLE and unicodedata.category(text[at - 2]) == "So"
    return text[at] == JOINER and after and (before or joined)
