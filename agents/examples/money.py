"""Money of the examples: decimal amounts with two places, written as text everywhere ("1284.00"), never as floats."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, WithJsonSchema

SIGNS = {"EUR": "€", "GBP": "£", "USD": "$"}
Currency = Literal["CHF", "EUR", "GBP", "SEK", "USD"]
RATES = dict(zip(get_args(Currency), map(Decimal, ("0.94", "1", "0.86", "11.20", "1.08")), strict=True))

# An amount in running text has a sign, a code or two decimals; a bare whole number may be anything. Codes of currencies
# that the shop does not take are read in capitals alone: "try 20.00" is no Turkish amount.
_NUMBER = r"\d{1,3}(?:[.,'\u00a0\u202f ]\d{3}){1,2}(?:[.,]\d{1,2})?|\d{1,9}(?:[.,]\d{1,2})?"
_OTHERS = r"(?-i:\b(?:AUD|CAD|CNY|CZK|DKK|HUF|INR|JPY|NOK|NZD|PLN|RON|RUB|TRY|UAH)\b|\b[A-Z]{1,3}\$)|[¥₽₺₹₩₴]"
_OURS = rf"[€£$]|\b(?:{'|'.join(RATES)})\b"
AMOUNT = re.compile(
    rf"(?P<before>{_OTHERS}|{_OURS})\s?(?P<a>{_NUMBER})"
    rf"|(?P<b>(?<![\d.,])(?:{_NUMBER}))\s?(?P<after>{_OTHERS}|{_OURS}|(?:euros?|dollars?|pounds?|yen)\b)"
    r"|(?<![\d.,/-])(?P<c>\d{1,9}[.,]\d{2})(?![\d.,/%-])",
    re.IGNORECASE,
)
_NAMES = {"€": "EUR", "£": "GBP", "$": "USD", "EURO": "EUR", "DOLLAR": "USD", "POUND": "GBP", "YEN": "JPY", "¥": "JPY"}


def exchange_money(amount: Decimal, currency: str, to: str) -> Decimal:
    """Return `amount` in another currency, at the fixed RATES for one euro, rounded to two places."""
    return round_to_cents(amount / RATES[currency] * RATES[to])


def round_to_cents(amount: Decimal) -> Decimal:
    """Round to two places, halves up."""
    return amount.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)


def show_money(amount: Decimal, currency: str) -> str:
    """Return an amount as people read it: "€1,284.00", "1,284.00 SEK"."""
    return f"{SIGNS[currency]}{amount:,.2f}" if currency in SIGNS else f"{amount:,.2f} {currency}"


def amounts_in(text: str) -> Iterator[tuple[Decimal, str]]:
    """Yield (amount, currency) of the amounts named in `text`, in either way of writing ("1,264.10", "1.264,10").

    The currency is its code, or its sign where it has no code here, or "".
    """
    for match in AMOUNT.finditer(text):
        figures = re.sub(r"['\u00a0\u202f ]", "", match["a"] or match["b"] or match["c"])
        whole, decimals = re.fullmatch(r"(.*?)(?:[.,](\d{1,2}))?", figures).groups(default="")  # type: ignore[union-attr]
        written = (match["before"] or match["after"] or "").upper()
        amount = Decimal(re.sub(r"[.,]", "", whole) + "." + (decimals or "0"))
        yield round_to_cents(amount), _NAMES.get(written.removesuffix("S"), written)


def _take_text(value: object) -> object:
    if not isinstance(value, str | Decimal):
        raise ValueError("write the amount as text, like 1264.10")
    return value


Money = Annotated[
    Decimal,
    BeforeValidator(_take_text),
    Field(ge=0, max_digits=12, decimal_places=2, allow_inf_nan=False),
    AfterValidator(round_to_cents),
    PlainSerializer(lambda amount: f"{amount:.2f}", return_type=str),
    WithJsonSchema({"type": "string", "format": "decimal", "pattern": r"^[0-9]{1,10}(\.[0-9]{1,2})?$"}),
]
