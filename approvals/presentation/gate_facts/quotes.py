"""What people said, as a gate shows it: their words from the saved state, under the label that the card gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from approvals.cards.card import Card
from checkpoints.values import json_pointer


@dataclass(frozen=True, kw_only=True)
class ShownQuote:
    """One person's words. Every part is untrusted: a label names whoever wrote, as they wrote it."""

    who: str
    how: str  # what the card says beside the name; may be empty
    text: str
    pointer: str


def quoted(card: Card, state: Mapping[str, Any]) -> list[ShownQuote]:
    """List the card's quotes in its order."""
    return [
        ShownQuote(
            who=each.label, how=each.role, text=str(json_pointer.find(state, each.pointer)), pointer=each.pointer
        )
        for each in card.quotes
    ]
