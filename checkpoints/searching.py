"""What somebody types to find something, as a text search by the beginnings of words. Pure."""

from __future__ import annotations

import re

WORDS = 8
WORD = re.compile(r"[^\W_]+")


def beginnings(text: str) -> str:
    """`refund 204` as `'refund':* & '204':*` for to_tsquery('simple', …); "" where nothing is left to look for.

    Letters and digits alone: whatever else is typed is no operator.
    """
    return " & ".join(f"'{word}':*" for word in WORD.findall(text)[:WORDS])
