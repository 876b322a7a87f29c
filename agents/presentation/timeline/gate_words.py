"""Texts about gates: how one ended, who decided and why, and for how long it held the run."""

from __future__ import annotations

from collections.abc import Callable

from approvals.english import join_names, quote_titles

from . import marks
from .facts import TimelineGate
from .marks import TimelineMark
from .remarks import Remark
from .words import format_duration

Called = Callable[[str], str]  # returns the title of a step of the run's plan


def ending_of(gate: TimelineGate) -> TimelineMark:
    """Return the mark for how a closed gate ended."""
    return marks.OUTCOMES.get(gate.outcome or gate.status, marks.ANSWERED)


def how_long(gate: TimelineGate) -> str:
    """Return for how long it held the run; empty while it is open."""
    return format_duration(gate.closed_at - gate.opened_at) if gate.closed_at else ""


def gate_remarks(gate: TimelineGate, called: Called) -> list[Remark]:
    """Return who decided a closed gate and what follows; a comment is quoted under its author's name."""
    if gate.status == "expired":
        if gate.outcome in ("approved", "edited", "mixed"):
            return [Remark("nobody decided in time, so the policy approved it")]
        return [Remark("nobody decided in time")]
    counted_in = [decision for decision in gate.decisions if decision.counts]
    deciding = [decision for decision in counted_in if decision.verdict == "reject"] or counted_in
    if not deciding:
        return []
    people = join_names([decision.name for decision in deciding])
    if gate.outcome == "rejected" and gate.then == "back" and gate.back_to:
        text = f"by {people}, back to {quote_titles([called(gate.back_to)])}"
    elif gate.outcome == "rejected":
        text = f"by {people}, the run stops"
    else:
        text = f"“{gate.answer_label}” by {people}" if gate.answer_label else f"by {people}"
    if gate.actions:
        text += f": {'; '.join(gate.actions)}"
    first, *others = [decision for decision in deciding if decision.comment] or [deciding[0]]
    lines = [Remark(text + ("." if gate.actions else ":") if first.comment else text, first.comment)]
    return lines + [Remark(f"{other.name}:", other.comment) for other in others]


def open_remark(gate: TimelineGate) -> Remark:
    """Return what an open gate waits for."""
    agreed = sum(decision.counts and decision.verdict != "reject" for decision in gate.decisions)
    if gate.quorum > 1:
        return Remark(f"{agreed} of {gate.quorum} approved")
    return Remark("asks how to go on after a fault" if gate.kind == "recovery" else "asks for a decision")
