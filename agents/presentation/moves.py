"""Texts for the orders to a run: the ways to rewind it, and the button that names the consequences. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from approvals.english import join_names, noun_for, quote_titles
from approvals.impact import Impact, ImpactRow
from approvals.presentation.drawing.impact_lines import ImpactLine
from checkpoints.models import Checkpoint
from checkpoints.runs.plans import PlanSpec
from checkpoints.values.checkpoint_kinds import EXECUTIONS


@dataclass(frozen=True, slots=True)
class RewindTarget:
    """One checkpoint to rewind to: `place` is "after" or "before"."""

    place: str
    to: int
    label: str
    step: str = ""  # the title of the step named in the label
    rest: str = ""


def ways(saved: Checkpoint, plan: PlanSpec, *, before: int, asked: bool = True) -> list[RewindTarget]:
    """List the ways to rewind at a checkpoint: go on from its state, or run the step that led to it again.

    `before` is the number of the checkpoint from which its step started, 0 where there is none in this run. `asked`:
    a gate had something to ask.
    """
    found = []
    step, gate = plan.title_of(saved.step), saved.kind == "gate"
    if saved.next_step and saved.kind in EXECUTIONS:
        effect = any(step.name == saved.step and step.kind == "effect" for step in plan.steps)
        keeps = "keeping what it did" if effect else "keeping what it wrote"
        keeps = keeps if not gate else "keeping its answer" if asked else ""
        found.append(RewindTarget("after", saved.seq, "After", step, keeps))
    elif saved.next_step:
        goes_on = "From this state, go on with"
        found.append(RewindTarget("after", saved.seq, goes_on, plan.title_of(saved.next_step)))
    if before and saved.kind in EXECUTIONS:
        again = "and run it again" if not gate else "and ask again" if asked else "and check again"
        found.append(RewindTarget("before", before, "Before", step, again))
    return found


def commit(verb: str, impact: Impact) -> str:
    """Return the button's text: "Rewind, undoing “Pay”", "Fork", "Rewind, undoing 2 effects, perhaps a third"."""
    lines = [verb]
    if impact.undone:
        lines.append(f"undoing {_effects(impact, impact.undone)}")
    if impact.may_undone:
        lines.append(f"perhaps undoing {_effects(impact, impact.may_undone)}")
    if impact.repeated:
        lines.append(f"repeating {quote_titles(impact.called(impact.repeated))}")
    return ", ".join(lines)


def _effects(impact: Impact, rows: Sequence[ImpactRow]) -> str:
    if len(rows) == 1:
        return quote_titles(impact.called(rows))
    return f"{len(rows)} effects"


def closing(gates: Sequence[int], agreed: Sequence[str]) -> ImpactLine | None:
    """Return the line on the gates that a move withdraws, whose approvals lapse; None where no gate is open."""
    if not gates:
        return None
    words = f"{noun_for(len(gates), 'gate')} {join_names([str(gate) for gate in gates])}"
    if agreed:
        lapse = noun_for(len(gates), "the approval of {} lapses", "the approvals of {} lapse").format(
            join_names(agreed)
        )
        text = f"{words}; {lapse}"
    else:
        text = f"{words} (not counted as {noun_for(len(gates), 'a rejection', 'rejections')})"
    return ImpactLine(effect="people", title="Withdraws", said=text)
