"""Turns typed search words into a text search by the beginnings of words. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

WORDS = 8
LONGEST = 1_000  # characters of one text that are searchable
WORD = re.compile(r"[^\W_]+")
NUMBER = re.compile(r"(?:(gate|run|[gr]-?|#)\s*)?([0-9]{1,18})", re.IGNORECASE | re.ASCII)


def prefix_query(text: str, people: Mapping[str, Sequence[int]] = MappingProxyType({})) -> str:
    """Turn `refund 204` into `'refund':* & '204':*` for to_tsquery('simple', …); "" if no word is left.

    Only letters and digits are kept: nothing that is typed is an operator. PostgreSQL reads 204 in BK-204 as -204.
    `people`: ids of those whose names have a word that begins like this one; their `person_term` is found too.
    """
    return " & ".join(_beginning(word, people.get(word, ())) for word in words_of(text))


def words_of(text: str) -> list[str]:
    """Return the words of what is typed that are looked for."""
    return WORD.findall(text)[:WORDS]


def person_term(person: int) -> str:
    """Return the search term of a person: names change, and are erased."""
    return f"person{person}"


def _beginning(word: str, people: Sequence[int]) -> str:
    either = [f"'{word}':*", *([f"'-{word}':*"] if word.isdecimal() else []), *(f"'{person_term(n)}'" for n in people)]
    return f"({' | '.join(either)})" if len(either) > 1 else either[0]


def looked_for(text: str, people: Mapping[str, Sequence[int]] = MappingProxyType({})) -> tuple[str, int, int]:
    """Return (`prefix_query`, *`parse_numbers`) of a text; no words if it is a number with its kind, such as R-7."""
    found = NUMBER.fullmatch(text.strip())
    return "" if found and found[1] not in (None, "#") else prefix_query(text, people), *parse_numbers(text)


def join_terms(*texts: str) -> str:
    """Return the search terms of these texts: only their words, split as `prefix_query` splits what is typed."""
    return " ".join(word for text in texts for word in WORD.findall(text[:LONGEST]))


def parse_numbers(text: str) -> tuple[int, int]:
    """Return the gate's number and the run's number that `R-12`, `G-45`, `gate 45` or `45` may mean; 0 for none."""
    found = NUMBER.fullmatch(text.strip())
    if found is None:
        return 0, 0
    what, number = (found[1] or "").lower(), int(found[2])
    return (0 if what.startswith("r") else number), (0 if what.startswith("g") else number)
