"""Texts about gates: how one ended, who decided and why, and for how long it held the run."""

from __future__ import annotations

from collections.abc import Callable

from django.utils.translation import gettext as _

from approvals.english import listed, quoted

from . import marks
from .facts import TimelineGate
from .marks import TimelineMark
from .remarks import Remark
from .words import duration

Called = Callable[[str], str]  # returns the title of a step of the run's plan


def ending_of(gate: TimelineGate) -> TimelineMark:
    """Return the mark for how a closed gate ended."""
    return marks.OUTCOMES.get(gate.outcome or gate.status, marks.ANSWERED)


def how_long(gate: TimelineGate) -> str:
    """Return for how long it held the run; empty while it is open."""
    return duration(gate.closed_at - gate.opened_at) if gate.closed_at else ""


def gate_remarks(gate: TimelineGate, called: Called) -> list[Remark]:
    """Return who decided a closed gate and what follows; a comment is quoted under its author's name."""
    if gate.status == "expired":
        if gate.outcome in ("approved", "edited", "mixed"):
            return [Remark(_("nobody decided in time, so the policy approved it"))]
        return [Remark(_("nobody decided in time"))]
    counted_in = [said for said in gate.said if said.counts]
    deciding = [said for said in counted_in if said.verdict == "reject"] or counted_in
    if not deciding:
        return []
    names = {"people": listed([said.name for said in deciding]), "answer": gate.answer_label}
    if gate.outcome == "rejected" and gate.then == "back" and gate.back_to:
        text = _("by %(people)s, back to %(step)s") % {**names, "step": quoted([called(gate.back_to)])}
    elif gate.outcome == "rejected":
        text = _("by %(people)s, the run stops") % names
    else:
        text = (_("“%(answer)s” by %(people)s") if gate.answer_label else _("by %(people)s")) % names
    if gate.actions:
        text += f": {'; '.join(gate.actions)}"
    first, *others = [said for said in deciding if said.comment] or [deciding[0]]
    told = [Remark(text + ("." if gate.actions else ":") if first.comment else text, first.comment)]
    return told + [Remark(f"{said.name}:", said.comment) for said in others]


def open_remark(gate: TimelineGate) -> Remark:
    """Return what an open gate waits for."""
    agreed = sum(said.counts and said.verdict != "reject" for said in gate.said)
    if gate.quorum > 1:
        return Remark(_("%(count)s of %(quorum)s approved") % {"count": agreed, "quorum": gate.quorum})
    return Remark(_("asks how to go on after a fault") if gate.kind == "recovery" else _("asks for a decision"))
