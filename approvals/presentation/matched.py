"""Says where in a gate the words of a search were found, if its row does not show it: a value's place, or a person."""

from __future__ import annotations

from approvals.cards.card import Card
from approvals.gates.lists.queue_filters import QueueFilters
from approvals.gates.lists.search_terms import found_in
from approvals.models import Gate
from checkpoints.postgresql.text_search import WORD, words_of


def where(gate: Gate, wanted: QueueFilters) -> str:
    """Return `order.note`, or `person`, for the words that are in no title of the gate; "" where the row shows all."""
    words = [word.casefold() for word in words_of(wanted.words)]
    if not words:
        return ""
    card = gate.asked
    shown = _words(f"{card.title} {card.for_whom} {card.resource} {card.amount}") | {str(gate.pk), str(gate.run_id)}
    left = [word for word in words if not any(each.startswith(word) for each in shown)]
    places = [_place(card, word) or "person" for word in left]
    return ", ".join(dict.fromkeys(places))


def _place(card: Card, word: str) -> str:
    for action in card.actions:
        if any(each.startswith(word) for each in _words(action.tool)):
            return action.tool
        for path, text in found_in(action.masked_in_messages):
            if any(each.startswith(word) for each in _words(text)):
                return path or action.id
    return ""


def _words(text: str) -> set[str]:
    return {word.casefold() for word in WORD.findall(text)}
