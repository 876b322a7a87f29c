"""Reads amounts as people write them, for an order by size; and the cost of delay that a card states. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple, TypedDict

SIGNS = {"€": "EUR", "£": "GBP", "$": "USD", "¥": "JPY"}
LARGEST = Decimal(10) ** 15
FINEST = Decimal("0.000001")
CODE = re.compile(r"(?<![A-Za-z])[A-Z]{3}(?![A-Za-z])")
FIGURES = re.compile(r"-?\d[\d.,'\u2019\u00a0\u202f ]*", re.ASCII)
GROUPS = re.compile(r"[,'\u2019\u00a0\u202f ]")
DECIMAL_COMMA = re.compile(r"\d{1,3}(?:\.\d{3})*,\d{1,2}", re.ASCII)
PLAIN = re.compile(r"-?\d+(?:\.\d+)?", re.ASCII)


class Delay(TypedDict):
    """The cost of a gate's waiting."""

    amount: str  # a plain number
    currency: str  # its ISO 4217 code
    per: str  # hour


class Amount(NamedTuple):
    """An amount of one currency; (\"\", 0) for none."""

    currency: str
    value: Decimal


NONE = Amount("", Decimal(0))


def read(text: str) -> Amount:
    """Read `€1,264.10`, `1.264,10 EUR` or `1264.1 SEK`; `NONE` where it is not one number with a currency.

    The sign `$` counts as USD.
    """
    found = FIGURES.findall(text[:100])
    units = [code for sign, code in SIGNS.items() if sign in text] or CODE.findall(text[:100])
    foreign = any(char.isdecimal() and not char.isascii() for char in text)
    if len(found) != 1 or len(set(units)) != 1 or foreign:
        return NONE
    figures = found[0].strip().rstrip(".,")
    if DECIMAL_COMMA.fullmatch(figures):
        figures = figures.replace(".", "").replace(",", ".")
    value = _number(GROUPS.sub("", figures))
    return NONE if value is None else Amount(units[0], value)


def fault_of_delay(delay: Any) -> str:
    """Say what is wrong with a card's cost of delay; "" where nothing is."""
    if delay is None:
        return ""
    if not isinstance(delay, Mapping) or {*delay} != {"amount", "currency", "per"}:
        return "the cost of delay needs amount, currency and per, and nothing else"
    value = _number(str(delay["amount"]))
    if value is None or value < 0:
        return f"the cost of delay {delay['amount']!r} is no plain number"
    if not isinstance(delay["currency"], str) or not CODE.fullmatch(delay["currency"]):
        return f"the currency {delay['currency']!r} of the cost of delay is no code of three capitals"
    return "" if delay["per"] == "hour" else "the cost of delay is per hour; say per='hour'"


def of_delay(delay: Mapping[str, Any] | None) -> Amount:
    """Return a card's cost of delay, an hour."""
    if not delay:
        return NONE
    return Amount(str(delay["currency"]), _number(str(delay["amount"])) or Decimal(0))


def _number(text: str) -> Decimal | None:
    if not PLAIN.fullmatch(text) or abs(value := Decimal(text)) >= LARGEST:
        return None
    return value.quantize(FINEST)
