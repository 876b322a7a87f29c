"""Says who decided at a gate, and why a run ended there."""

from __future__ import annotations

from approvals.models import Outcome
from checkpoints.actors import SYSTEM, Actor


def why_ended(outcome: Outcome) -> str:
    """Say why the run ended at the gate, with the words of whoever ended it."""
    if outcome.kind == Outcome.Kind.EXPIRED:
        return "Nobody decided in time"
    if outcome.kind == Outcome.Kind.WITHDRAWN:
        return f"The gate was withdrawn: {outcome.words}"
    return f"Rejected by {name(outcome)}: {outcome.words}" if outcome.words else f"Rejected by {name(outcome)}"


def name(outcome: Outcome) -> str:
    """Return the name of whoever decided."""
    return outcome.by_name or outcome.by


def who(outcome: Outcome) -> Actor:
    """Return whoever decided; the system where nobody did."""
    return Actor(outcome.by, outcome.by_name) if outcome.by else SYSTEM
