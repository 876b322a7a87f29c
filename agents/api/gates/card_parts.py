"""The author of each part of a gate's card, for programs that show it to people."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, ClassVar

from agents.api.protocol import ApiSchema, one_of
from approvals.cards.card import Card
from approvals.cards.quote import quoted
from approvals.models import Gate
from approvals.presentation.gate_facts.namesakes import namesakes_of
from approvals.presentation.gate_facts.provenance import CALL, PLAN, PROGRAM, TOOL, Provenance
from checkpoints.errors import NoSuchCheckpoint
from checkpoints.values.canonical_json import encode_canonical

PART = {"at": "/title", "by": PROGRAM, "words": "Title by payouts"}


class CardPartAnswer(ApiSchema):
    """One part of a card, and its author."""

    example: ClassVar = {"at": PART["at"], "by": PART["by"], "words": PART["words"]}

    at: str
    """JSON Pointer into `card`."""
    by: Annotated[str, one_of((PROGRAM, PLAN, TOOL, CALL))]
    """program: the external program that asks. plan: an agent of this server. tool: the people who registered the tool.
    call: it is what would run."""
    words: str
    """The mark to show beside it; empty: it may be shown as Holdpoint's own."""


def card_parts(gate: Gate, card: Card) -> bytes:
    """Return the parts of a card as JSON. Needs the gate's run with its plan."""
    named: dict[int, str] = {}
    with suppress(NoSuchCheckpoint):  # where the gate is closed, retention may have removed the state
        named = namesakes_of(gate, quoted(card.quotes, gate.saved.state)) if card.quotes else {}
    return encode_canonical(Provenance.of(gate).parts_as_json(card, named))
