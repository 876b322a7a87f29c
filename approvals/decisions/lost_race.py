"""Explains why a decision came too late, and what has changed since its sender looked."""

from __future__ import annotations

from approvals.cards.binding import Row, body_rows
from approvals.cards.card import state_veil
from approvals.errors import AlreadyDecided, DecisionRefused, GateExpired, GateWithdrawn, StaleGate
from approvals.gates.reading import GateReading
from approvals.models import Gate, Proposal
from checkpoints.runs.plans import spec_of
from checkpoints.values import patch

from . import edit_state


def lost_race(reading: GateReading, seen: bytes) -> DecisionRefused | None:
    """Return the refusal of a decision on the proposal with the digest `seen`; None where it is still in time.

    Judges the gate as it was read, so read it again first.
    """
    gate, proposal = reading.gate, reading.proposal
    if gate.status == Gate.Status.WITHDRAWN:
        return GateWithdrawn(gate.outcome.words)
    if gate.status == Gate.Status.EXPIRED:
        return GateExpired()
    if gate.status == Gate.Status.DECIDED:
        outcome = gate.outcome
        return AlreadyDecided(outcome.by_name or outcome.by, outcome.get_kind_display())
    if gate.deadline and gate.deadline <= reading.now:
        return GateExpired()
    if bytes(proposal.digest) == seen:
        return None
    answered = proposal.card.label_of(proposal.content["answer"])
    return StaleGate(changes_since(gate, seen), proposal.by_name, answered)


def changes_since(gate: Gate, seen: bytes) -> list[Row]:
    """List what changed in the proposal since the version with the digest `seen`; [] for an unknown digest."""
    looked_at = gate.proposals.filter(digest=seen).first()
    return between(gate, looked_at, gate.standing()) if looked_at else []


def between(gate: Gate, looked_at: Proposal, current: Proposal) -> list[Row]:
    """List what differs between two versions of what the gate asks, with secrets masked."""
    card, rows = current.card, body_rows(looked_at.content, current.content)
    patches = [looked_at.state_patch, current.state_patch]
    if any(edit_state.beyond(card, each) for each in patches):
        before, after = (patch.apply(each, gate.saved.state) for each in patches)
        rows += [{"of": edit_state.PART, **row} for row in edit_state.rows_beyond(card, before, after)]
    return edit_state.hidden(rows, card, state_veil(spec_of(gate.run.plan), card))
