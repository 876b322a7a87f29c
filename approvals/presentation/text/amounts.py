"""Writes an amount in words, in which a misplaced digit shows, and in figures that are easy to read. Pure."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from num2words import num2words  # type: ignore[import-untyped]

LARGEST = Decimal(10) ** 15  # beyond it the words get too long to read
FINEST = 6  # decimals
SIGNS = {"EUR": "€", "GBP": "£", "USD": "$"}
# A longer number is no amount, and would be ten times as long with its digits grouped.
PLAIN = re.compile(r"(-?\d{1,3})((?:\d{3}){1,9})(\.\d+)?", re.ASCII)


def in_words(value: Any, currency: str) -> str:
    """Write `1264.10` of "EUR" as "one thousand, two hundred and sixty-four euro, ten cents".

    A currency without a name here is written by its code, and a part smaller than its coins digit by digit, so that
    nothing is rounded. "" for what is no amount.
    """
    amount = _amount(value)
    if amount is None:
        return ""
    amount = amount.normalize()
    decimals = max(-int(amount.as_tuple().exponent), 0)
    if decimals > FINEST:
        return ""
    plain = amount.quantize(Decimal(1).scaleb(-decimals)) if decimals else Decimal(int(amount))
    if decimals <= 2:
        try:
            said = str(num2words(str(plain), lang="en", to="currency", currency=currency))
            return said.rpartition(", zero ")[0] or said if not decimals else said
        except NotImplementedError:
            pass
    return f"{num2words(int(plain) if not decimals else plain, lang='en')} {currency}".strip()


def written(value: Any, currency: str) -> str:
    """Write `1264.1` of "EUR" as "€1,264.10", of "SEK" as "1,264.10 SEK"; "" if no amount. Nothing is rounded."""
    amount = _amount(value)
    if amount is None:
        return ""
    decimals = max(-int(amount.normalize().as_tuple().exponent), 2)
    sign, figures = "-" if amount < 0 else "", f"{abs(amount):,.{decimals}f}"
    if decimals > FINEST:
        return ""
    return f"{sign}{SIGNS[currency]}{figures}" if currency in SIGNS else f"{sign}{figures} {currency}"


def grouped(value: Any) -> SafeString | None:
    """Render `1264.10` with a gap before each three digits; None for a short value, or no plain number.

    The gap is drawn and is no character: copying gives the exact value, and an amount with a real space, comma or
    apostrophe looks different.
    """
    found = PLAIN.fullmatch(str(value)) if isinstance(value, (str, int)) and not isinstance(value, bool) else None
    if found is None:
        return None
    first, rest, decimals = found.groups()
    threes = ((rest[at : at + 3],) for at in range(0, len(rest), 3))
    gaps = format_html_join("", '<span class="thousands">{}</span>', threes)
    return format_html("{}{}{}", first, gaps, decimals or "")


def _amount(value: Any) -> Decimal | None:
    text = str(value)
    if isinstance(value, bool) or not text.isascii() or "_" in text:  # a receiver may read other digits otherwise
        return None
    try:
        amount = Decimal(text)
    except InvalidOperation:
        return None
    return None if not amount.is_finite() or abs(amount) >= LARGEST else amount
