"""Finds the order numbers in a mail, and texts that only look like one. Pure."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from agents.examples.money import AMOUNT
from approvals.presentation.text import lookalikes as product_lookalikes

_WORD = r"(?:order|bestell(?:ung)?|auftrag|заказ[^\W\da-z]{0,8}|[#№]|\b(?:no|nr)\.)"
_NUMBERED = re.compile(_WORD + r"[^\d\n]{0,12}([0-9]{4,8})(?![0-9])", re.IGNORECASE)
_LEADING = re.compile(rf"{_WORD}(?:s?-?(?:nummer|number|nr|no|id))?[-.]*", re.IGNORECASE)
_BESIDE = re.compile(r"(?<![\w-])(?<!\d\.)([0-9]{4,8})(?![\w-]|\.\d)")
_ANY = re.compile(r"(?<![\w-])([0-9]{4,8})(?![\w-])")
_SENTENCE = re.compile(r"(?:[^.!?]|(?<=\bno)\.|(?<=\bnr)\.|[.!?](?!\s))+", re.IGNORECASE)
_TOKENS = re.compile(r"(?:[^\s,;:!?()\"'\u2019<>#№/|=\u2013\u2014.]|\.(?![^\W\d]))+")
_TURNED = re.compile("[\u202a-\u202e\u2066-\u2069]")  # show the digits behind them in another order
_YEAR, _DAY = "(?:19|20)[0-9]{2}", "[0-9]{1,2}"
_MONTH = (
    r"\b(?:jan(?:uary?)?|feb(?:ruary?)?|mar(?:ch)?|märz|apr(?:il)?|ma[iy]|jun[ei]?|jul[iy]?|aug(?:ust)?|"
    r"sep(?:t(?:ember)?)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?)\b\.?"
)
# Dates and amounts are no order's number even behind "order": "ordered on 2026-10-21", "order value 54.30".
_NO_ORDER = re.compile(
    rf"(?<![\d.,/-])(?:{_YEAR}(?P<mark>[-./]){_DAY}(?P=mark){_DAY}|{_DAY}[-./]{_DAY}[-./]{_YEAR})(?!\d)"
    rf"|{_MONTH} (?:{_DAY}(?:st|nd|rd|th)?,? )?{_YEAR}(?![\w-])"
    rf"|\b(?:in|since|from|date|year|seit|vom):? {_YEAR}(?![\w-])"
    r"|(?<![\d.,])[0-9]{1,4}[.,][0-9]{2}(?![\d.,/-]\d|\d)",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(
    r"\b(?:zip|plz|post ?code|(?:tele)?phone|mobile|fax|tel)\b(?: code| number| is)?[.: ]{1,3}[+0-9][0-9 /()-]{3,16}",
    re.IGNORECASE,
)
SHORTEST, LONGEST, USUAL = 4, 8, 5  # digits of a number
LONGEST_TOKEN = 16
LONGEST_WORD = 24  # letters that are written together with a number
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
    `is_order` knows, wherever it stands. Any other of as many digits counts beside one of these in its sentence, unless
    it is a date, an amount, a postcode or a telephone's number. One of five digits by itself counts in the subject if
    that has no other, and in the words if nothing else was found. What has more in its word than the digits names no
    order: it only looks like a number, as all do behind a character that may show them in another order.
    """
    numbers, lookalikes, lone = list[str](), list[str](), list[str]()
    for text in (subject, words):
        known, lone = list[str](), []
        for line in text.split("\n"):
            shown, *turned = _TURNED.split(line, maxsplit=1)
            dated = _NO_ORDER.sub(_blank, shown)
            told = [found.start(1) for found in _NUMBERED.finditer(dated)]
            tokens = [_token_at(dated, at) for at in told]
            in_shop = [found for found in _ANY.finditer(shown) if is_order(found[1])]
            others = list(_BESIDE.finditer(_ELSEWHERE.sub(_blank, AMOUNT.sub(_blank, dated))))
            numbers += [token for token in tokens if _plain(token)]
            numbers += _beside([*told, *(found.start() for found in in_shop)], others, shown)
            known += [found[1] for found in in_shop]
            lone += [found[1] for found in others if len(found[1]) == USUAL]
            lookalikes += [token[:40] for token in tokens if not _plain(token)]
            lookalikes += [found[1] for rest in turned for found in _BESIDE.finditer(rest)]
            lookalikes += _disguised(line)
        if text is subject and not numbers:
            numbers += lone
        numbers += known
    numbers = numbers or lone
    return NumbersNamed(numbers=list(dict.fromkeys(numbers))[:20], lookalikes=list(dict.fromkeys(lookalikes))[:20])


def _beside(named: list[int], others: Iterable[re.Match[str]], line: str) -> Iterator[str]:
    """Yield the numbers in the sentences that have one that is named, by where in the line these stand."""
    if not named:
        return
    ends = [sentence.end() for sentence in _SENTENCE.finditer(line)]
    sentences = {bisect(ends, at) for at in named}
    yield from (found[1] for found in others if bisect(ends, found.start()) in sentences)


def _blank(found: re.Match[str]) -> str:
    """Return marks that part words, as many as the characters that they stand for."""
    return "," * len(found[0])


def _plain(token: str) -> bool:
    return token.isascii() and token.isdecimal()


def _token_at(text: str, at: int) -> str:
    """Return the whole word that has its number here, without the word "order" before it and marks around it."""
    first = max(at - LONGEST_WORD, 0)
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
