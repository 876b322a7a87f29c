"""An amount in words: a misplaced digit hides in figures, and not in words. Pure."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

from num2words import num2words  # type: ignore[import-untyped]

LARGEST = Decimal(10) ** 15  # beyond it the words are longer than anybody reads
FINEST = 6  # decimals


def in_words(value: Any, currency: str) -> str:
    """`1264.10` of "EUR" as "one thousand, two hundred and sixty-four euro, ten cents".

    A currency that has no name here is said by its code, and a part that it has no coin for digit by digit, so that
    nothing is rounded away. Empty for what is no amount.
    """
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        return ""
    if isinstance(value, bool) or not amount.is_finite() or abs(amount) >= LARGEST:
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
