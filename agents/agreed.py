"""What an agreement at a gate writes into the state: the edit, and what the agent is told of the decision."""

from __future__ import annotations

from typing import Any

from approvals.models import Gate, Outcome
from checkpoints import patch
from checkpoints.patch import touched as touched

from . import fields
from .planning import DECISION
from .slices import Slice

AGREED = (Outcome.Kind.APPROVED, Outcome.Kind.EDITED, Outcome.Kind.ANSWERED)


def writes(slice: Slice, gate: Gate, outcome: Outcome) -> dict[str, Any]:
    """What an agreement writes into the state at the head."""
    state = patch.apply(outcome.state_patch, slice.snapshot.state)
    return edited(outcome, slice.snapshot.state) | told(slice, gate, outcome, state)


def edited(outcome: Outcome, state: dict[str, Any]) -> dict[str, Any]:
    """The fields of `state` that the edit touches, as it makes them."""
    after = patch.apply(outcome.state_patch, state)
    return {name: after.get(name) for name in touched(outcome.state_patch)}


def told(slice: Slice, gate: Gate, outcome: Outcome, after: dict[str, Any]) -> dict[str, Any]:
    """What the agent is told of the decision, where its state has a place for it."""
    if DECISION not in slice.agent.State.model_fields:
        return {}
    said = {
        "gate": gate.step,
        "kind": outcome.kind,
        "by": outcome.by_name or outcome.by,
        "changes": patch.changes(slice.snapshot.state, after),
        "answer": outcome.answered,
    }
    return {DECISION: fields.dumped(slice.agent.State, DECISION, said)}
