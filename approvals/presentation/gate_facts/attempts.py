"""What a gate's page says where the same was rejected before."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import User

from approvals.models import Gate

ORDINALS = ("", "First", "Second", "Third", "Fourth", "Fifth", "Sixth", "Seventh", "Eighth", "Ninth", "Tenth")


@dataclass(frozen=True)
class Attempt:
    """Which attempt it is, and how the last one ended."""

    title: str
    times: str  # how often it was rejected
    gate: Gate | None  # the last one that was rejected, with its outcome; None where the reader may not see it
    heard: bool  # whether the reader sees the team's runs, and so what was said at them

    @property
    def by(self) -> str:
        return self.gate.outcome.by_name or self.gate.outcome.by if self.gate else ""

    @property
    def reason(self) -> str:
        """Return why it was rejected, as far as it fits on a line."""
        return self.gate.outcome.words if self.gate and self.heard else ""


def of_gate(gate: Gate, *, reader: User, heard: bool) -> Attempt | None:
    """Return the attempt that this gate is; None at the first."""
    rejected = gate.attempt - 1
    if not rejected:
        return None
    seen = Gate.objects.visible_to(reader).select_related("outcome")
    last = seen.filter(pk=gate.rejected_before_id or 0).first()
    named = ORDINALS[gate.attempt] if gate.attempt < len(ORDINALS) else f"{gate.attempt}th"
    times = {1: "once", 2: "twice"}.get(rejected, f"{rejected} times")
    return Attempt(f"{named} attempt", times, last, heard)
