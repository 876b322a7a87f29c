"""Collects the words by which a gate is found: its titles, the people in it, and the values that it asks about.

Never a secret: what a schema hides is masked before it is read, and a mask has no words. Bounded, since an agent
chooses how much it asks about.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from approvals.cards.card import Card
from approvals.schema.redact import MASK
from checkpoints.postgresql.text_search import join_terms, person_term

MOST = 3_000  # characters of values
EACH = 200  # characters of one value
DEEPEST = 20


def of_card(card: Card, *people: int | None) -> str:
    """Return the search terms of a card and of the people who ask, by their ids."""
    asking = [person_term(person) for person in people if person]
    shown = join_terms(card.title, card.for_whom, card.resource, card.amount, *asking)
    return " ".join(dict.fromkeys(f"{shown} {_bounded(card)}".split()))


def found_in(value: Any, at: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield (path, text) for each text and number in a value that is already masked."""
    if isinstance(value, dict) and depth < DEEPEST:
        for name, inner in value.items():
            yield from found_in(inner, f"{at}.{name}" if at else str(name), depth + 1)
    elif isinstance(value, list | tuple) and depth < DEEPEST:
        for inner in value:
            yield from found_in(inner, at, depth + 1)
    elif isinstance(value, str) and MASK not in value:
        yield at, value[:EACH]
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield at, str(value)


def _bounded(card: Card) -> str:
    said: list[str] = []
    left = MOST
    for action in card.actions:
        for text in (action.tool, *(found for _path, found in found_in(action.masked_in_messages))):
            words = join_terms(text)
            if len(words) > left:
                return " ".join(said)
            left -= len(words)
            said.append(words)
    return " ".join(said)
