"""Describes a decision that takes effect at the end of its undo window: whose it is, what happens then, and when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from approvals.english import join_names
from approvals.models import Gate, Outcome

from .agreement import Agreement

CLOSED_BY = timedelta(seconds=15)  # after the end of the window


@dataclass(frozen=True, kw_only=True)
class HeldDecision:
    """A decision that its people may undo until `at`."""

    kind: str  # of the outcome that it will have
    short: str  # the same in a word
    icon: str
    words: str  # `Approved by you and Bob Lindqvist.`
    at: datetime
    then: str  # what happens at the end: `Pays a refund €5.25, once`
    mine: int  # the number of the reader's decision; 0 where they have none here
    overdue: bool  # the window has passed for so long that something should have closed the gate
    late: bool  # the deadline has passed, so that nobody can decide again after an undo


def held(gate: Gate, agreement: Agreement, *, then: str, now: datetime) -> HeldDecision | None:
    """Describe the decision that waits at this gate; None where none does."""
    if gate.settles_at is None or gate.status != Gate.Status.OPEN:
        return None
    kind = gate.settles_as
    state = "rejected" if kind == "rejected" else "approved"
    counting = sorted((voice for voice in agreement.voices if voice.state == state), key=lambda voice: not voice.you)
    names = join_names("you" if voice.you else voice.name for voice in counting)
    return HeldDecision(
        kind=kind,
        short=short(gate),
        icon="x" if kind == "rejected" else "check",
        words=f"{Outcome.Kind(kind).label} by {names}.",
        at=gate.settles_at,
        then=_rejection(agreement) if kind == "rejected" else then,
        mine=agreement.mine.pk if agreement.mine else 0,
        overdue=gate.settles_at + CLOSED_BY < now,
        late=bool(gate.deadline and gate.deadline <= now),
    )


def short(gate: Gate) -> str:
    """Say in a word what was decided at a gate where that waits for the end of its undo window; else ""."""
    if gate.settles_at is None or gate.status != Gate.Status.OPEN:
        return ""
    return "Decided" if gate.settles_as == Outcome.Kind.MIXED else str(Outcome.Kind(gate.settles_as).label)


def _rejection(agreement: Agreement) -> str:
    last = next((each for each in reversed(agreement.voices) if each.state == "rejected"), None)
    return "The agent tries again" if last and last.back_to else "The gate closes as rejected"
