"""Describes an action as its call: the tool and the arguments by their real names. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import islice
from operator import attrgetter
from typing import Any

from django.utils.functional import cached_property

from approvals.cards.action import Action
from approvals.cards.card import Card
from approvals.schema import redact
from checkpoints.values import json_pointer

SHOWN = 4  # arguments shown of a call, pinned ones first
LONGEST = 80  # characters of a value in a sentence
LEAVES = 1_000  # values that are read; a list of gates reads those of each gate
READ = 500  # characters read of one value
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
Masked = Callable[[Action], Any]  # returns an action's arguments as they may be seen at a place
AT_GATE: Masked = attrgetter("masked")
IN_MESSAGES: Masked = attrgetter("masked_in_messages")


@dataclass(frozen=True, kw_only=True)
class ExactCall:
    """The call of an action."""

    tool: str
    parts: tuple[tuple[str, Any], ...]  # arguments: (dotted path, masked value)
    more: int = 0  # number of further arguments


def call(action: Action) -> ExactCall:
    """Return an action's call: its pinned arguments, then its first plain ones."""
    shown = action.masked
    places = [place for place in action.pinned if json_pointer.has_value(shown, place)]
    members = shown.items() if isinstance(shown, Mapping) and "" not in places else ()
    plain = [json_pointer.join("", name) for name, each in members if not isinstance(each, (dict, list))]
    places += [place for place in plain if place not in places][: max(SHOWN - len(places), 0)]
    parts = tuple((dotted(place) or "all of it", json_pointer.find_value(shown, place)) for place in places)
    tops = {json_pointer.split_pointer(place)[0] for place in places if place}
    left = 0 if "" in places or not isinstance(shown, Mapping) else len(set(shown) - tops)
    return ExactCall(tool=action.tool, parts=parts, more=left)


def dotted(pointer: str) -> str:
    """Write `/lines/0/amount` as `lines.0.amount`."""
    return ".".join(json_pointer.split_pointer(pointer))


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
        """Return its identity: action id and pointer."""
        return self.action.id, self.pointer

    @cached_property
    def text(self) -> str:
        """Return the beginning of its value, as text."""
        return written(self.value, READ)

    @cached_property
    def plain(self) -> str:
        """Return its text in the form for comparison."""
        return alike(self.text)

    @cached_property
    def numbers(self) -> set[Decimal]:
        """Return the number that it is, or the numbers in its text."""
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
        """Return the words of its path's names, in lower case."""
        return {word.lower() for token in json_pointer.split_pointer(self.pointer) for word in _WORDS.findall(token)}


class TooMany(Exception):
    """There are more arguments than LEAVES, and the rest would go unread."""


def leaves(*actions: Action, masked: Masked) -> list[CallLeaf]:
    """List the plain values of the actions' arguments, secrets left out. Raises TooMany beyond `LEAVES` values."""
    found: list[CallLeaf] = []
    seen = 0
    for action in actions:
        left: list[tuple[str, Any]] = [("", masked(action))]
        while left:
            place, value = left.pop()
            seen += 1
            if seen > LEAVES:
                raise TooMany
            if isinstance(value, (dict, list)):
                left += reversed([(json_pointer.join(place, name), each) for name, each in _members(value)])
            elif value is not None and value != redact.MASK:
                pinned = any(json_pointer.covers_place(pin, place) for pin in action.pinned)
                found.append(CallLeaf(pointer=place, value=value, pinned=pinned, action=action))
    return found


def _members(value: dict[str, Any] | list[Any]) -> Iterator[tuple[str, Any]]:
    """Yield members, no more than are read."""
    named = value.items() if isinstance(value, dict) else ((str(at), each) for at, each in enumerate(value))
    return islice(named, LEAVES + 1)


def is_number(value: Any) -> bool:
    """Tell whether a value is a number, or a text that is one."""
    return not isinstance(value, bool) and (
        isinstance(value, (int, float)) or (isinstance(value, str) and bool(NUMBER.fullmatch(value.strip())))
    )


def money(known: Iterable[CallLeaf]) -> list[CallLeaf]:
    """List the values of one action whose real names mean money, and its pinned numbers."""
    return [leaf for leaf in known if leaf.numbers and _paid(leaf)]


def _paid(leaf: CallLeaf) -> bool:
    """Tell whether a value is an amount. A text may hold other numbers too, so its own name has to mean money."""
    if is_number(leaf.value):
        return leaf.pinned or bool(leaf.words & MONEY)
    own = leaf.pointer.rpartition("/")[2]
    return any(word.lower() in MONEY for word in _WORDS.findall(own))


def amount(card: Card, *, masked: Masked) -> str:
    """Return the only amount in the arguments, with its currency; "" where there are several, or texts."""
    try:
        known = [leaves(action, masked=masked) for action in card.actions if action.settled is None]
    except TooMany:
        return ""
    paid = [(leaf, plain) for plain in known for leaf in money(plain)]
    if not all(is_number(leaf.value) for leaf, _plain in paid):
        return ""
    said = {_with_currency(leaf, plain) for leaf, plain in paid}
    return said.pop() if len(said) == 1 else ""


def _with_currency(leaf: CallLeaf, known: Iterable[CallLeaf]) -> str:
    beside = leaf.pointer.rpartition("/")[0] + "/currency"
    unit = next((each.text for each in known if each.pointer == beside), "")
    return short(leaf.value) + (f" {unit}" if re.fullmatch("[A-Z]{3}", unit) else "")


def short(value: Any, most: int = LONGEST) -> str:
    """Write a value for a sentence, cut after `most` characters."""
    text = written(value, most + 1)
    return text if len(text) <= most else f"{text[:most]}…"


def readings(text: str) -> set[Decimal]:
    """Return the numbers that an amount in a text may mean: "1.284" is 1284 or 1.284, by the writer's convention."""
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
    """Return a text normalized, so that texts that read alike are equal."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def written(value: Any, most: int) -> str:
    """Return the beginning of a value as text."""
    try:
        return value[:most] if isinstance(value, str) else str(value)[:most]
    except ValueError:  # past Python's limit for decimal digits
        return "a number of very many digits"
