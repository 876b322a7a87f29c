"""Masks a gate's saved values for the API: secrets become placeholders, the rest keeps its exact bytes. Pure."""

from __future__ import annotations

from typing import Any

from approvals.cards import answer as answering
from approvals.decisions import edit_state
from approvals.models import Gate, Outcome, Proposal
from approvals.schema import redact
from approvals.schema.redact import Redaction
from checkpoints.runs.plans import spec_of
from checkpoints.values.canonical_json import canonical, decode


def card_of(gate: Gate, proposal: Proposal) -> tuple[bytes, list[str]]:
    """Return (a proposal as JSON, the pointers to what is masked in it)."""
    body, state = bytes(proposal.body), _veil(gate)
    plain: dict[str, Any] = decode(body)
    found: list[str] = []
    for at, action in enumerate(plain.get("actions", [])):
        veil, place = redact.veil(action.get("schema") or {}), f"/actions/{at}/arguments"
        found += [place + each for each in veil.places(action.get("arguments"))]
        action["arguments"] = veil.masked(action.get("arguments"), named=True)
        if settled := action.get("settled"):
            veil, place = redact.veil(action.get("response") or {}), f"/actions/{at}/settled/response"
            found += [place + each for each in veil.places(settled["response"])]
            settled["response"] = veil.masked(settled["response"], named=True)
    if answer := plain["answer"]:
        veil = answering.redaction(proposal.card, answer)
        found += ["/answer/value" + each for each in veil.places(answer["value"])]
        answer["value"] = veil.masked(answer["value"], named=True)
    if state and plain.get("state"):
        plain["state"] = state.patch(plain["state"])
    if state and plain.get("reopened"):
        rows = plain["reopened"].get("changes", [])
        plain["reopened"]["changes"] = edit_state.hidden(rows, proposal.card, state)
    return (canonical(plain), found) if found or state else (body, [])


def outcome_of(gate: Gate, outcome: Outcome) -> dict[str, bytes]:
    """Return, by column, the JSON of what was decided."""
    card, state = outcome.proposal.card, _veil(gate)
    arguments: dict[str, Any] = decode(bytes(outcome.arguments))
    hidden = {action.id: redact.veil(action.schema) for action in card.actions}
    shown = {
        name: hidden[name].masked(each, named=True) if name in hidden else each for name, each in arguments.items()
    }
    return {
        "arguments": canonical(shown),
        "answer": canonical(answering.masked(card, outcome.answered)),
        "patch": canonical(state.patch(outcome.state_patch)),
    }


def _veil(gate: Gate) -> Redaction:
    return redact.veil(spec_of(gate.run.plan).state_schema)
