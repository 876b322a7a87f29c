"""Money of the examples: decimal amounts with two places, written as text everywhere.

`Money` takes text or a Decimal and refuses anything else, floats too; it is dumped as text again ("1284.00").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal
from typing import Annotated, Literal, NamedTuple, get_args

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, WithJsonSchema

CENT = Decimal("0.01")
SIGNS = {"EUR": "€", "GBP": "£", "USD": "$"}
Currency = Literal["CHF", "EUR", "GBP", "SEK", "USD"]
CURRENCIES = get_args(Currency)
RATES = {name: Decimal(rate) for name, rate in zip(CURRENCIES, ("0.94", "1", "0.86", "11.20", "1.08"), strict=True)}

# An amount in running text has a sign, a code or two decimals; a bare whole number may be anything.
_NUMBER = r"\d{1,3}(?:[.,'\u00a0\u202f ]\d{3}){1,2}(?:[.,]\d{1,2})?|\d{1,9}(?:[.,]\d{1,2})?"
# Codes of other currencies are read in capitals alone: "try 20.00" is no Turkish amount.
_OTHERS = (
    r"(?-i:\b(?:AED|AUD|BGN|BRL|CAD|CNY|CZK|DKK|HKD|HUF|ILS|INR|JPY|KRW|MXN|NOK|NZD|PLN|RON|RUB|SGD|THB|TRY|UAH|ZAR)\b)"
    r"|(?-i:\b[A-Z]{1,3}\$)|[¥₽₺₹₩₴]"
)
_BEFORE = rf"{_OTHERS}|[€£$]|\b(?:EUR|GBP|USD|CHF|SEK)\b"
_AFTER = rf"{_OTHERS}|[€£$]|(?:EUR|GBP|USD|CHF|SEK|euros?|dollars?|pounds?|zł|yen)\b"
AMOUNT = re.compile(
    rf"(?P<before>{_BEFORE})\s?(?P<a>{_NUMBER})|(?P<b>(?<![\d.,])(?:{_NUMBER}))\s?(?P<after>{_AFTER})"
    r"|(?<![\d.,/-])(?P<c>\d{1,9}[.,]\d{2})(?![\d.,/%-])",
    re.IGNORECASE,
)
_NAMES = {"€": "EUR", "£": "GBP", "$": "USD", "EURO": "EUR", "DOLLAR": "USD", "POUND": "GBP", "YEN": "JPY", "¥": "JPY"}


def exchanged(amount: Decimal, currency: str, to: str) -> Decimal:
    """`amount` in another currency, at the fixed RATES for one euro, rounded to two places."""
    return cents(amount / RATES[currency] * RATES[to])


def cents(amount: Decimal) -> Decimal:
    """Round to two places, halves up."""
    return amount.quantize(CENT, rounding=ROUND_HALF_UP)


def shown(amount: Decimal, currency: str) -> str:
    """Return an amount as people read it: "€1,284.00", "1,284.00 SEK"."""
    figures = f"{amount:,.2f}"
    return f"{SIGNS[currency]}{figures}" if currency in SIGNS else f"{figures} {currency}"


class Named(NamedTuple):
    """An amount that a text names, with its currency by code, by sign where it has no code here; "" without one."""

    amount: Decimal
    currency: str


def amounts_in(text: str) -> Iterator[Named]:
    """Yield the amounts named in `text`, in either way of writing ("1,264.10", "1.264,10").

    Two decimals alone make an amount, without a currency.
    """
    for found in AMOUNT.finditer(text):
        said = (found["before"] or found["after"] or "").upper()
        yield Named(_read(found["a"] or found["b"] or found["c"]), _NAMES.get(said.removesuffix("S"), said))


def _read(written: str) -> Decimal:
    figures = re.sub(r"['\u00a0\u202f ]", "", written)
    whole, mark, rest = figures, "", ""
    if (last := max(figures.rfind("."), figures.rfind(","))) >= 0 and len(figures) - last <= 3:
        whole, mark, rest = figures[:last], ".", figures[last + 1 :]
    return cents(Decimal(re.sub(r"[.,]", "", whole) + mark + rest))


def _text_only(value: object) -> object:
    if not isinstance(value, str | Decimal):
        raise ValueError("write the amount as text, like 1264.10")
    return value


Money = Annotated[
    Decimal,
    BeforeValidator(_text_only),
    Field(ge=0, max_digits=12, decimal_places=2, allow_inf_nan=False),
    AfterValidator(cents),
    PlainSerializer(lambda amount: f"{amount:.2f}", return_type=str),
    WithJsonSchema({"type": "string", "format": "decimal", "pattern": r"^[0-9]{1,10}(\.[0-9]{1,2})?$"}),
]
