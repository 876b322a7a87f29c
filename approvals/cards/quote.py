"""Quotes on a card: somebody's words in the saved state, shown as theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from checkpoints.values import json_pointer


@dataclass(frozen=True, kw_only=True)
class Quote:
    """One quote: its author and its place in the state. The gate binds the words by its checkpoint."""

    label: str  # who said it, by name: "Ellery, Marit"
    pointer: str  # where in the state the text is
    role: str = ""  # the author's role and the channel: "customer, by mail"

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object with every field."""
        return asdict(self)


def quoted(quotes: Sequence[Quote], state: Mapping[str, Any]) -> list[tuple[Quote, str]]:
    """List the quotes with their texts in the state; both are untrusted."""
    return [(each, str(json_pointer.find_value(state, each.pointer))) for each in quotes]


def faults_of(quotes: Sequence[Quote], state: Mapping[str, Any]) -> list[str]:
    """List what is wrong with a card's quotes, a sentence each."""
    faults = []
    for quote in quotes:
        if not quote.label.strip():
            faults.append(f"the quote of {quote.pointer} needs a label that says whose words it quotes")
        if not json_pointer.has_value(state, quote.pointer):
            faults.append(f"there is nothing at {quote.pointer} in the state to quote")
        elif not isinstance(json_pointer.find_value(state, quote.pointer), str):
            faults.append(f"what is at {quote.pointer} in the state is no text to quote")
    return faults
