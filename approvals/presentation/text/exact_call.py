"""An action as the call that it is: its tool and arguments by their real names, whatever anybody calls them. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cached_property
from itertools import islice
from typing import Any

from django.utils.translation import gettext as _

from approvals.cards.action import Action
from approvals.cards.card import Card
from approvals.schema import redact
from checkpoints.values import json_pointer

SHOWN = 4  # arguments of a call where fewer are pinned
LONGEST = 80  # characters of a value in a sentence
LEAVES = 1_000  # values that are looked at: a list of gates looks at those of each
READ = 500  # characters of one
MONEY = frozenset(
    {
        "amount", "amounts", "total", "sum", "price", "prices", "cost", "costs", "fee", "fees", "value", "payment",
        "refund", "credit", "debit", "charge", "balance", "money", "pay", "net", "gross", "cents", "pence", "minor",
        "betrag", "summe", "preis", "montant", "importe",
    }
)  # fmt: skip
MINOR = frozenset(("cents", "pence", "minor"))
NUMBER = re.compile(r"-?\d{1,60}(?:\.\d{1,30})?", re.ASCII)
FIGURES = r"\d(?:[\d.,'\u2019\u00a0\u202f ]{0,40}\d)?"
SCALES = {"k": 3, "thousand": 3, "m": 6, "mio": 6, "mn": 6, "million": 6, "bn": 9, "billion": 9}
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


@dataclass(frozen=True, kw_only=True)
class ExactCall:
    """What would be called, with what."""

    tool: str
    parts: tuple[tuple[str, Any], ...]  # arguments: the names on the way to each, with dots, and its masked value
    more: int = 0  # arguments that are not named here


def call(action: Action) -> ExactCall:
    """Return the call: what is pinned of an action, then its first plain arguments."""
    shown = action.masked
    places = [place for place in action.pinned if json_pointer.has(shown, place)]
    members = shown.items() if isinstance(shown, Mapping) and "" not in places else ()
    plain = [json_pointer.join("", name) for name, each in members if not isinstance(each, (dict, list))]
    places += [place for place in plain if place not in places][: max(SHOWN - len(places), 0)]
    parts = tuple((dotted(place) or _("all of it"), json_pointer.find(shown, place)) for place in places)
    tops = {json_pointer.tokens(place)[0] for place in places if place}
    left = 0 if "" in places or not isinstance(shown, Mapping) else len(set(shown) - tops)
    return ExactCall(tool=action.tool, parts=parts, more=left)


def dotted(pointer: str) -> str:
    """Write `/lines/0/amount` as `lines.0.amount`."""
    return ".".join(json_pointer.tokens(pointer))


@dataclass(frozen=True, kw_only=True)
class CallLeaf:
    """One plain value of an action's arguments."""

    pointer: str
    value: Any
    pinned: bool
    action: Action

    @property
    def name(self) -> str:
        return dotted(self.pointer)

    @property
    def key(self) -> tuple[str, str]:
        """Return what tells it from others."""
        return self.action.id, self.pointer

    @cached_property
    def text(self) -> str:
        """Return its value as text, as far as it is read."""
        return written(self.value, READ)

    @cached_property
    def plain(self) -> str:
        """Return its text as it is compared."""
        return alike(self.text)

    @cached_property
    def numbers(self) -> set[Decimal]:
        """Return the number that it is; of a text that is no number, those in it."""
        if isinstance(self.value, bool):
            return set()
        if not is_number(self.value):
            return {each for match in re.finditer(FIGURES, self.text) for each in readings(match[0])}
        try:
            value = Decimal(self.text.strip())
        except InvalidOperation:
            return set()
        return {value.scaleb(-2) if self.words & MINOR else value}

    @cached_property
    def words(self) -> set[str]:
        """Return the words of its name and of the names on the way to it, in lower case."""
        return {word.lower() for token in json_pointer.tokens(self.pointer) for word in _WORDS.findall(token)}


class TooMany(Exception):
    """The arguments are more than are looked at."""


def leaves(*actions: Action) -> list[CallLeaf]:
    """List the plain values of the actions' arguments, secrets left out. Raises TooMany beyond `LEAVES` values."""
    found: list[CallLeaf] = []
    seen = 0
    for action in actions:
        left: list[tuple[str, Any]] = [("", action.masked)]
        while left:
            place, value = left.pop()
            seen += 1
            if seen > LEAVES:
                raise TooMany
            if isinstance(value, (dict, list)):
                left += reversed([(json_pointer.join(place, name), each) for name, each in _members(value)])
            elif value is not None and value != redact.MASK:
                pinned = any(json_pointer.covers(pin, place) for pin in action.pinned)
                found.append(CallLeaf(pointer=place, value=value, pinned=pinned, action=action))
    return found


def _members(value: dict[str, Any] | list[Any]) -> Iterator[tuple[str, Any]]:
    """Yield no more members than are looked at."""
    named = value.items() if isinstance(value, dict) else ((str(at), each) for at, each in enumerate(value))
    return islice(named, LEAVES + 1)


def is_number(value: Any) -> bool:
    """Tell whether a value is a number, or a text that is one."""
    return not isinstance(value, bool) and (
        isinstance(value, (int, float)) or (isinstance(value, str) and bool(NUMBER.fullmatch(value.strip())))
    )


def money(known: Iterable[CallLeaf]) -> list[CallLeaf]:
    """List the values of one action that speak of money by their real names, and the numbers that are pinned."""
    return [leaf for leaf in known if leaf.numbers and _paid(leaf)]


def _paid(leaf: CallLeaf) -> bool:
    """Tell whether a value is an amount. A text holds other numbers too: its own name has to say so."""
    if is_number(leaf.value):
        return leaf.pinned or bool(leaf.words & MONEY)
    own = leaf.pointer.rpartition("/")[2]
    return any(word.lower() in MONEY for word in _WORDS.findall(own))


def amount(card: Card) -> str:
    """Return the one amount that the arguments say, with its currency; "" where there are several, or words."""
    try:
        paid = [leaf for action in card.actions if action.settled is None for leaf in money(leaves(action))]
    except TooMany:
        return ""
    if not all(is_number(leaf.value) for leaf in paid):
        return ""
    said = {_with_currency(leaf) for leaf in paid}
    return said.pop() if len(said) == 1 else ""


def _with_currency(leaf: CallLeaf) -> str:
    beside = leaf.pointer.rpartition("/")[0] + "/currency"
    arguments = leaf.action.arguments
    unit = json_pointer.find(arguments, beside) if json_pointer.has(arguments, beside) else ""
    known = isinstance(unit, str) and re.fullmatch("[A-Z]{3}", unit)
    return short(leaf.value) + (f" {unit}" if known else "")


def short(value: Any) -> str:
    """Write a value in a sentence, cut where nobody would read on."""
    text = written(value, LONGEST + 1)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def readings(text: str) -> set[Decimal]:
    """Return the numbers that an amount in a text may mean: "1.284" is 1284 or 1.284, according to who writes."""
    figures = re.search(FIGURES, text)
    if figures is None:
        return set()
    digits = re.sub(r"['\u2019\s\u00a0\u202f]", "", figures[0])
    scale = re.search(rf"({'|'.join(SCALES)})\b", text[figures.end() :].strip().lower())
    power = SCALES[scale[1]] if scale and text[figures.end() :].strip().lower().startswith(scale[1]) else 0
    last = max(digits.rfind("."), digits.rfind(","))
    if last < 0:
        forms = {digits}
    else:
        plain = re.sub("[.,]", "", digits)
        pointed = re.sub("[.,]", "", digits[:last]) + "." + digits[last + 1 :]
        mixed, groups = {".", ","} <= set(digits), len(digits) - last - 1 == 3
        several = digits.count(digits[last]) > 1
        forms = {plain} if several else {pointed} if mixed or not groups else {plain, pointed}
    return {Decimal(each).scaleb(power) for each in forms if len(each) <= 60}


def alike(text: str) -> str:
    """Return a text in the form in which two that read alike are the same."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def written(value: Any, most: int) -> str:
    """Return the beginning of a value as text."""
    try:
        return value[:most] if isinstance(value, str) else str(value)[:most]
    except ValueError:  # past Python's limit for decimal digits
        return _("a number of very many digits")
