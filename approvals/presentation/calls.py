"""An action as the call that it is: its tool and arguments by their real names, whatever anybody calls them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from approvals import pointers, veils
from approvals.cards import Action, Card

SHOWN = 4  # arguments of a call of which none is pinned
LONGEST = 80  # characters of a value in a sentence
LEAVES = 5_000  # values that are looked at
MONEY = frozenset(
    {
        "amount", "amounts", "total", "sum", "price", "prices", "cost", "costs", "fee", "fees", "value", "payment",
        "refund", "credit", "debit", "charge", "balance", "money", "pay", "net", "gross", "cents", "pence", "minor",
        "betrag", "summe", "preis", "montant", "importe",
    }
)  # fmt: skip
MINOR = frozenset(("cents", "pence", "minor"))
NUMBER = re.compile(r"-?\d{1,60}(?:\.\d{1,30})?", re.ASCII)
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


@dataclass(frozen=True, kw_only=True)
class Part:
    """One argument by its real name."""

    name: str  # the names on the way to it, with dots
    value: Any  # masked where it is secret


@dataclass(frozen=True, kw_only=True)
class Call:
    """What would be called, with what."""

    tool: str
    parts: tuple[Part, ...]
    more: int = 0  # arguments that are not named here


def call(action: Action) -> Call:
    """What is pinned of an action, else its first plain arguments."""
    shown = veils.veil(action.schema).masked(action.arguments)
    places = [place for place in action.pinned if pointers.has(shown, place)]
    if not places:
        plain = shown if isinstance(shown, Mapping) else {}
        places = [pointers.join("", name) for name, each in plain.items() if not isinstance(each, (dict, list))][:SHOWN]
    parts = tuple(Part(name=dotted(place) or "all of it", value=pointers.get(shown, place)) for place in places)
    tops = {pointers.tokens(place)[0] for place in places if place}
    left = 0 if "" in places or not isinstance(shown, Mapping) else len(set(shown) - tops)
    return Call(tool=action.tool, parts=parts, more=left)


def dotted(pointer: str) -> str:
    """`/lines/0/amount` as `lines.0.amount`."""
    return ".".join(pointers.tokens(pointer))


@dataclass(frozen=True, kw_only=True)
class Leaf:
    """One plain value of an action's arguments."""

    pointer: str
    value: Any
    pinned: bool
    action: Action

    @property
    def name(self) -> str:
        return dotted(self.pointer)

    @property
    def words(self) -> set[str]:
        """The words of its name and of the names on the way to it, in lower case."""
        return {word.lower() for token in pointers.tokens(self.pointer) for word in _WORDS.findall(token)}


def leaves(action: Action) -> Iterator[Leaf]:
    """The plain values of an action's arguments, secrets left out; `LEAVES` of them at most."""
    shown = veils.veil(action.schema).masked(action.arguments)
    pins = set(action.pinned)
    left = [("", shown)]
    told = 0
    while left and told < LEAVES:
        place, value = left.pop()
        told += 1
        if isinstance(value, dict):
            left += [(pointers.join(place, name), each) for name, each in reversed(value.items())]
        elif isinstance(value, list):
            left += [(pointers.join(place, str(at)), value[at]) for at in range(min(len(value), LEAVES) - 1, -1, -1)]
        elif value is not None and value != veils.MASK:
            pinned = any(pointers.covers(pin, place) for pin in pins)
            yield Leaf(pointer=place, value=value, pinned=pinned, action=action)


def is_number(value: Any) -> bool:
    """Whether a value is a number, or a text that is one."""
    return not isinstance(value, bool) and (
        isinstance(value, (int, float)) or (isinstance(value, str) and bool(NUMBER.fullmatch(value.strip())))
    )


def money(action: Action) -> list[Leaf]:
    """The numbers that speak of money by their real names, else those that are pinned."""
    numbers = [leaf for leaf in leaves(action) if is_number(leaf.value)]
    return [leaf for leaf in numbers if leaf.words & MONEY] or [leaf for leaf in numbers if leaf.pinned]


def amount(card: Card) -> str:
    """The one amount that the arguments say, with the currency that stands beside it; "" where there are several."""
    said = {_with_currency(leaf) for action in card.actions if action.settled is None for leaf in money(action)}
    return said.pop() if len(said) == 1 else ""


def _with_currency(leaf: Leaf) -> str:
    beside = leaf.pointer.rpartition("/")[0] + "/currency"
    arguments = leaf.action.arguments
    unit = pointers.get(arguments, beside) if pointers.has(arguments, beside) else ""
    known = isinstance(unit, str) and re.fullmatch("[A-Z]{3}", unit)
    return short(leaf.value) + (f" {unit}" if known else "")


def short(value: Any) -> str:
    """A value in a sentence, cut where nobody would read on."""
    try:
        text = str(value)
    except ValueError:  # past Python's limit for decimal digits
        return "a number of very many digits"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
