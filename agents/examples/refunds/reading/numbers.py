"""Finds the order numbers in a mail, and texts that only look like one. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

_WORD = r"(?:order|bestellung|auftrag|заказ\w*|#|\bno\.|\bnr\.)"
_NUMBERED = re.compile(_WORD + r"[^\d\n]{0,12}([0-9]{4,8})\b", re.IGNORECASE)
_LONE = re.compile(r"(?<![\d.,-])[0-9]{5}(?![\d.,-]|\b\d)")
_TOKENS = re.compile(r"[^\s,;:!?()\"'<>#№]{4,16}")
SHORTEST, LONGEST = 4, 8  # digits of a number
SURE = 3  # as many digits make a word a number in disguise
# What is drawn like a digit, in the alphabets that mails come in. Of ASCII only what people take for one.
_DRAWN = {
    "0": "Oo\u041e\u043e\u039f\u03bf\u0555\u0585", "1": "lI|\u0406\u04c0\u0131", "2": "\u01a7\u01a8",
    "3": "\u0417\u0437\u042d", "4": "\u0427\u0447", "5": "\u01bc\u01bd", "6": "\u0431\u0183", "8": "\u0222\u0223",
    "9": "\u0563",
}  # fmt: skip
_DRAWN_LIKE = {letter: digit for digit, letters in _DRAWN.items() for letter in letters}


@dataclass(frozen=True, kw_only=True)
class NumbersNamed:
    """What a mail names, each once and in its order."""

    numbers: list[str]
    lookalikes: list[str]

    @property
    def only(self) -> str | None:
        """Return the order's number if there is one and nothing that could be another, else None."""
        return self.numbers[0] if len(self.numbers) == 1 and not self.lookalikes else None


def named(subject: str, words: str) -> NumbersNamed:
    """Find what the subject and the words in sight name.

    Behind "order", "Bestellung", "заказ" or "#" any number of four to eight digits counts. A number of five digits by
    itself counts in the subject if that has none of those, and in the words if nothing else was found.
    """
    said = [*_NUMBERED.findall(subject), *_NUMBERED.findall(words)]
    said = [*(said or []), *([] if _NUMBERED.search(subject) else _LONE.findall(subject))]
    said = said or _LONE.findall(words)
    disguised = [each for text in (subject, words) for each in _disguised(text)]
    return NumbersNamed(numbers=list(dict.fromkeys(said))[:20], lookalikes=list(dict.fromkeys(disguised))[:20])


def _disguised(text: str) -> Iterator[str]:
    for found in _TOKENS.finditer(text):
        token = found[0].strip(".-")
        if token.isdecimal() and token.isascii():
            continue
        read, digits = _read(token)
        shortest = SHORTEST + token.isascii()  # 100l is a hundred litres
        if shortest <= len(read) <= LONGEST and digits >= SURE:
            yield token[:40]


def _read(token: str) -> tuple[str, int]:
    """(the number that it looks like, how many of its characters are digits of some alphabet); ("", 0) for a word."""
    read, digits = "", 0
    for char in token:
        if unicodedata.category(char) in ("Cf", "Mn"):  # drawn as nothing, or over the character before it
            continue
        digit = unicodedata.digit(char, None)
        if digit is None and char not in _DRAWN_LIKE:
            return "", 0
        read += _DRAWN_LIKE[char] if digit is None else str(digit)
        digits += digit is not None
    return read, digits
