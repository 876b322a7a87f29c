"""What is said of gates: how one ended, who decided and why, and for how long it held the run."""

from __future__ import annotations

from collections.abc import Callable

from approvals.english import listed, quoted

from . import marks
from .facts import Asked
from .marks import Mark
from .remarks import Remark
from .words import duration

Called = Callable[[str], str]  # what people call a step of the run's plan, by its name


def ending_of(gate: Asked) -> Mark:
    """Say how a closed gate ended."""
    return marks.OUTCOMES.get(gate.outcome or gate.status, marks.ANSWERED)


def how_long(gate: Asked) -> str:
    """Say for how long it held the run; empty while it does."""
    return duration(gate.closed_at - gate.opened_at) if gate.closed_at else ""


def gate_remarks(gate: Asked, called: Called) -> list[Remark]:
    """Say who decided a closed gate and what follows; a comment is quoted under its author's name."""
    if gate.status == "expired":
        approved = ", so the policy approved it" if gate.outcome in ("approved", "edited", "mixed") else ""
        return [Remark(f"nobody answered in time{approved}")]
    counted_in = [said for said in gate.said if said.counts]
    deciding = [said for said in counted_in if said.verdict == "reject"] or counted_in
    if not deciding:
        return []
    text = "by " + listed([said.name for said in deciding])
    if gate.answer_label:
        text = f"“{gate.answer_label}” {text}"
    if gate.outcome == "rejected":
        back = gate.then == "back" and gate.back_to
        text += f", back to {quoted([called(gate.back_to)])}" if back else ", the run stops"
    if gate.actions:
        text += f": {'; '.join(gate.actions)}"
    first, *others = [said for said in deciding if said.comment] or [deciding[0]]
    told = [Remark(text + ("." if gate.actions else ":") if first.comment else text, first.comment)]
    return told + [Remark(f"{said.name}:", said.comment) for said in others]


def open_remark(gate: Asked) -> Remark:
    """Say what an open gate waits for."""
    agreed = sum(said.counts and said.verdict != "reject" for said in gate.said)
    asks = "asks how to go on after a fault" if gate.kind == "recovery" else "asks for a decision"
    return Remark(f"{agreed} of {gate.quorum} agreed" if gate.quorum > 1 else asks)
