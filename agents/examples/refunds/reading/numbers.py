"""Finds the order numbers in a mail, and texts that only look like one. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from approvals.presentation.text import lookalikes as product_lookalikes

_WORD = r"(?:order|bestellung|auftrag|заказ[^\W\d]*|#|\bno\.|\bnr\.)"
_NUMBERED = re.compile(_WORD + r"[^\d\n]{0,12}([0-9]{4,8})(?![0-9])", re.IGNORECASE)
_LEADING = re.compile(rf"{_WORD}[-.]*", re.IGNORECASE)
_LONE = re.compile(r"(?<![\w-])(?<!\d[.,])([0-9]{5})(?![\w-]|[.,]\d)")
_ANY = re.compile(r"(?<![\w-])([0-9]{4,8})(?![\w-])")
_SENTENCE = re.compile(r"(?:[^.!?\n]|[.!?](?!\s))+")
_TOKENS = re.compile(r"[^\s,;:!?()\"'\u2019<>#№/]+")
SHORTEST, LONGEST = 4, 8  # digits of a number
LONGEST_TOKEN = 16
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


def named(subject: str, words: str, is_order: Callable[[str], bool] = lambda number: False) -> NumbersNamed:
    """Find what the subject and the words in sight name.

    Behind "order", "Bestellung", "заказ" or "#" any number of four to eight digits counts, and so does whatever
    `is_order` knows, wherever it stands. A number of five digits by itself counts beside another one in its sentence,
    in the subject if that has no other, and in the words if nothing else was found. What has more in its word than the
    digits names no order: it only looks like a number.
    """
    numbers, lookalikes = list[str](), list[str]()
    for text in (subject, words):
        for sentence in _SENTENCE.findall(text):
            told = [_token_at(sentence, found.start(1)) for found in _NUMBERED.finditer(sentence)]
            numbers += [each for each in told if _plain(each)]
            lookalikes += [each[:40] for each in told if not _plain(each)]
            numbers += _LONE.findall(sentence) if told else []
        if text is subject and not numbers:
            numbers += _LONE.findall(subject)
        numbers += filter(is_order, _ANY.findall(text))
        lookalikes += _disguised(text)
    numbers = numbers or _LONE.findall(words)
    return NumbersNamed(numbers=list(dict.fromkeys(numbers))[:20], lookalikes=list(dict.fromkeys(lookalikes))[:20])


def _plain(token: str) -> bool:
    return token.isascii() and token.isdecimal()


def _token_at(text: str, at: int) -> str:
    """Return the whole word that has its number here, without the word "order" before it and marks around it."""
    first = max(at - LONGEST_TOKEN, 0)
    tokens = _TOKENS.finditer(text, first, at + LONGEST_TOKEN)
    token = next(found for found in tokens if found.end() > at)
    before, number = text[token.start() : at], text[at : token.end()]
    return _without_marks(_LEADING.sub("", before) + number)


def _without_marks(token: str) -> str:
    """Return a word without the punctuation and signs around it."""
    marks = {char for char in token if unicodedata.category(char)[0] in "PS"}
    return token.strip("".join(marks)) if marks else token


def _disguised(text: str) -> Iterator[str]:
    for found in _TOKENS.finditer(text):
        token = _without_marks(found[0])
        if _plain(token) or not SHORTEST <= len(token) <= LONGEST_TOKEN:
            continue
        read, digits = _read(token)
        shortest = SHORTEST + token.isascii()  # 100l is a hundred litres
        alike = shortest <= len(read) <= LONGEST and digits >= SURE
        if alike or (sum(map(str.isdecimal, token)) >= SHORTEST and product_lookalikes.in_exact(token)):
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
