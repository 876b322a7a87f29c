"""Finds the order numbers in a mail, and what only looks like one. Pure. docs/refunds.md says what counts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import NamedTuple

from agents.examples.money import AMOUNT
from approvals.presentation.text import lookalikes as product_lookalikes

_WORD = r"(?:order|bestell(?:ung)?|auftrag|заказ[^\W\da-z]{0,8}|[#№]|\b(?:no|nr)\.)"
_NAMED = re.compile(_WORD + r"[^\d\n]{0,12}?(?=[0-9]{4,8}(?![0-9]))", re.IGNORECASE)
_LEADING = re.compile(rf".*{_WORD}(?:s?-?(?:nummer|number|nr|no|id))?[-.]*", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w-])(?<!\d\.)([0-9]{4,8})(?![\w-]|\.\d)")
_SENTENCE = re.compile(r"(?<![NnRr][OoRr])[.!?]\s|\n")
_TOKEN = re.compile(r"(?:[^\s,;:!?()\"'\u2019<>#№/|=\u2013\u2014.]|\.(?![^\W\d]))+")
_TURNED = re.compile("[\u202a-\u202e\u2066-\u2069].*")  # show the digits behind them in another order
# Dates and amounts are no order's number even behind "order": "ordered on 2026-10-21", "order value 54.30".
_NO_ORDER = re.compile(
    r"(?<![\d.,/-])(?:\d{4}([-./])\d{1,2}\1\d{1,2}|\d{1,2}[-./]\d{1,2}[-./]\d{4}|\d{1,4}[.,]\d{2})(?![.,/-]?\d)"
)
# What is drawn like a digit, in the alphabets that mails come in.
_DRAWN = frozenset("OolI|\u041e\u043e\u039f\u03bf\u0406\u04c0\u0131\u0417\u0437\u0427\u0447\u01bc\u0431\u0222")
USUAL, LONGEST = 5, 16  # digits of a number, characters of a word that may be one
YEARS = range(1990, 2036)


class NumbersNamed(NamedTuple):
    """What a mail names, each once and in its order."""

    numbers: list[str]
    lookalikes: list[str]

    @property
    def only(self) -> str | None:
        """Return the order's number if there is one and nothing that could be another, else None."""
        return self.numbers[0] if len(self.numbers) == 1 and not self.lookalikes else None


def find_numbers(subject: str, words: str, is_order: Callable[[str], bool] = lambda number: False) -> NumbersNamed:
    """Find what the subject and the words in sight name. `is_order`: whether the shop has an order of that number.

    What has more in its word than the digits names no order: it only looks like a number, as all do behind a character
    that may show them in another order.
    """
    numbers, lookalikes, lone = list[str](), list[str](), list[str]()
    for text in (subject, words):
        known, lone = list[str](), []
        for sentence in _SENTENCE.split(text):
            turned = "".join(_TURNED.findall(sentence))
            seen = _TURNED.sub("", sentence)
            dated = _NO_ORDER.sub(_blank, seen)
            tokens = [_word_at(dated, each.end()) for each in _NAMED.finditer(dated)]
            tokens = [token for token in tokens if not _is_year(token)]
            in_shop = [number for number in _NUMBER.findall(seen) if is_order(number)]
            others = [each for each in _NUMBER.findall(AMOUNT.sub(_blank, dated)) if not _is_year(each)]
            numbers += [token for token in tokens if _is_plain(token)]
            numbers += others if tokens or in_shop else []
            known += in_shop
            lone += [number for number in others if len(number) == USUAL]
            lookalikes += [token[:40] for token in tokens if not _is_plain(token)]
            lookalikes += _NUMBER.findall(turned)
            lookalikes += [
                token[:40] for token in map(_without_marks, _TOKEN.findall(sentence)) if _is_disguised(token)
            ]
        if text is subject and not numbers:
            numbers += lone
        numbers += known
    return NumbersNamed(list(dict.fromkeys(numbers or lone))[:20], list(dict.fromkeys(lookalikes))[:20])


def _is_plain(token: str) -> bool:
    return token.isascii() and token.isdecimal()


def _is_year(number: str) -> bool:
    return len(number) == 4 and _is_plain(number) and int(number) in YEARS


def _blank(found: re.Match[str]) -> str:
    """Return marks that part words, as many as the characters that they stand for."""
    return "," * len(found[0])


def _word_at(text: str, at: int) -> str:
    """Return the whole word that has its number here, without the word "order" before it and marks around it."""
    token = next(each for each in _TOKEN.finditer(text, max(at - 24, 0), at + LONGEST) if each.end() > at)
    return _without_marks(_LEADING.sub("", text[token.start() : at]) + text[at : token.end()])


def _without_marks(token: str) -> str:
    """Return a word without the punctuation and signs around it."""
    return token.strip("".join({char for char in token if unicodedata.category(char)[0] in "PS"}))


def _is_disguised(token: str) -> bool:
    """Tell whether a word is read as a number and is none: its characters are digits of some alphabet, or drawn so."""
    if _is_plain(token) or not 4 <= len(token) <= LONGEST:
        return False
    seen = [char for char in token if unicodedata.category(char) not in ("Cf", "Mn")]  # those draw nothing
    digits = sum(unicodedata.digit(char, None) is not None for char in seen)
    drawn = sum(char in _DRAWN for char in seen)
    if digits + drawn == len(seen) and 4 + token.isascii() <= len(seen) <= 8 and digits >= 3:  # 100l: a hundred litres
        return True
    return sum(map(str.isdecimal, token)) >= 4 and bool(product_lookalikes.in_exact(token))
