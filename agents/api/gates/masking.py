"""Masks a gate's saved values for the API: secrets become placeholders, the rest keeps its exact bytes. Pure.

The API shows what the gate's page shows: whoever reads it may decide.
"""

from __future__ import annotations

from typing import Any

from approvals.cards import answer as answering
from approvals.cards.card import state_veil
from approvals.decisions import edit_state
from approvals.models import Gate, Outcome, Proposal
from checkpoints.runs.plans import spec_of
from checkpoints.values.canonical_json import decode_canonical, encode_canonical


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
