"""A gate's saved values for the API: secrets become placeholders, the rest keeps its exact bytes; who says which part.

The API shows what the gate's page shows: whoever reads it may decide.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from typing import Annotated, Any, ClassVar

from agents.api.protocol.schemas import ApiSchema, one_of
from approvals.cards import answer as answering
from approvals.cards.card import Card, state_veil
from approvals.cards.quote import quoted
from approvals.decisions import edit_state
from approvals.models import Gate, Outcome, Proposal
from approvals.presentation.gate_facts.namesakes import namesakes_of
from approvals.presentation.gate_facts.provenance import CALL, PLAN, PROGRAM, TOOL, UNREADABLE, Provenance
from checkpoints.errors import NoSuchCheckpoint
from checkpoints.runs.plans import spec_of
from checkpoints.values.canonical_json import decode_canonical, encode_canonical

PART = {"at": "/title", "by": PROGRAM, "words": "Title by payouts"}


def card_of(gate: Gate, proposal: Proposal) -> tuple[bytes, list[str]]:
    """Return (a proposal as JSON, the pointers to what is masked in it)."""
    body, card = bytes(proposal.body), proposal.card
    state = state_veil(spec_of(gate.run.plan), card)
    plain: dict[str, Any] = decode_canonical(body)
    found: list[str] = []
    for at, (action, shown) in enumerate(zip(plain.get("actions", []), card.actions, strict=True)):
        veil, place = shown.redaction, f"/actions/{at}/arguments"
        found += [place + word for word in veil.places(action.get("arguments"))]
        action["arguments"] = veil.masked(action.get("arguments"), named=True)
        if settled := action.get("settled"):
            veil, place = shown.response_redaction, f"/actions/{at}/settled/response"
            found += [place + word for word in veil.places(settled["response"])]
            settled["response"] = veil.masked(settled["response"], named=True)
    if answer := plain["answer"]:
        veil = answering.redaction(card, answer)
        found += ["/answer/value" + place for place in veil.places(answer["value"])]
        answer["value"] = veil.masked(answer["value"], named=True)
    if state and plain.get("state"):
        plain["state"] = state.patch(plain["state"])
    if state and plain.get("reopened"):
        rows = plain["reopened"].get("changes", [])
        plain["reopened"]["changes"] = edit_state.hidden(rows, card, state)
    return (encode_canonical(plain), found) if found or state else (body, [])


def outcome_of(gate: Gate, outcome: Outcome) -> dict[str, bytes]:
    """Return, by column, the JSON of what was decided."""
    card = outcome.proposal.card
    state = state_veil(spec_of(gate.run.plan), card)
    arguments: dict[str, Any] = decode_canonical(bytes(outcome.arguments))
    hidden = {action.id: action.redaction for action in card.actions}
    shown = {
        name: hidden[name].masked(item, named=True) if name in hidden else item for name, item in arguments.items()
    }
    return {
        "arguments": encode_canonical(shown),
        "answer": encode_canonical(answering.masked(card, outcome.answered)),
        "patch": encode_canonical(state.patch(outcome.state_patch)),
    }


class CardPartAnswer(ApiSchema):
    """One part of a card, and its author."""

    example: ClassVar = {"at": PART["at"], "by": PART["by"], "words": PART["words"]}

    at: str
    """JSON Pointer into `card`."""
    by: Annotated[str, one_of((PROGRAM, PLAN, TOOL, CALL, UNREADABLE))]
    """program: the external program that asks. plan: an agent of this server. tool: the people who registered the tool.
    call: it is what would run. unreadable: it would run, and cannot be read on the page: a file, an encoding, or a text
    that is too long."""
    words: str
    """The mark to show beside it; empty: it may be shown as Holdpoint's own."""


def card_parts(gate: Gate, card: Card) -> bytes:
    """Return the parts of a card as JSON. Needs the gate's run with its plan."""
    named: dict[int, str] = {}
    with suppress(NoSuchCheckpoint):  # where the gate is closed, retention may have removed the state
        named = namesakes_of(gate, quoted(card.quotes, gate.saved.state)) if card.quotes else {}
    return encode_canonical([asdict(part) for part in Provenance.of(gate).parts(card, named)])
