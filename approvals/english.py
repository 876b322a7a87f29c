"""Counts in English and lists, written one way everywhere: "1 customer", "2 customers", "Ann, Bob and Mira"."""

from __future__ import annotations

from collections.abc import Iterable

_WITHIN = str.maketrans("“”", "\u2018\u2019")  # or a title could end its own quotation, and go on in our voice


def noun_for(count: int, singular: str, many: str = "") -> str:
    """Return `singular` or `many` (without it, `singular` with an s), to agree with a count written elsewhere."""
    return singular if count == 1 else many or f"{singular}s"


def count_of(count: int, singular: str, many: str = "") -> str:
    """Return `count` with its noun: "1 branch", "2,000 branches"."""
    return f"{count:,} {noun_for(count, singular, many)}"


def join_names(names: Iterable[str]) -> str:
    """Join names as a sentence lists them: "Ann", "Ann and Bob", "Ann, Bob and Mira"; each once."""
    *first, last = list(dict.fromkeys(names)) or [""]
    return f"{', '.join(first)} and {last}" if first else last


def quote_titles(titles: Iterable[str]) -> str:
    """Join titles as a sentence quotes them: “Pay the refund” and “Reply to the customer”; each once."""
    return join_names(f"“{title.translate(_WITHIN)}”" for title in titles)
