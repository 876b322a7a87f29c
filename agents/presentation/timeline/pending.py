"""The rows without a checkpoint: an open gate, the step under way, and the steps ahead."""

from __future__ import annotations

from collections.abc import Sequence

from agents.models import StepCheckpoint, Wait
from approvals.english import quote_titles
from checkpoints.runs.plans import StepSpec

from . import marks
from .facts import Story, TimelineGate
from .gate_words import Called, ending_of, gate_remarks, how_long, open_remark
from .remarks import Remark
from .rows import TimelineRow
from .words import format_duration


def of_gate(gate: TimelineGate, called: Called) -> TimelineRow:
    """Return the row of a gate that has no checkpoint of its own: it is open, or it was withdrawn."""
    row = TimelineRow(
        f"gate-{gate.id}", called(gate.step), marks.HELD, link="gate" if gate.visible else "", target=gate.id
    )
    row.at = gate.opened_at
    if gate.status != "open":
        row.mark, row.took, row.remarks = ending_of(gate), how_long(gate), gate_remarks(gate, called)
        return row
    row.on_hold = True
    row.since = gate.opened_at
    row.remarks.append(open_remark(gate))
    return row


def of_next(story: Story) -> TimelineRow | None:
    """Return the row of the step that runs, is queued, or is where the run ended; None where a gate's row shows it."""
    run = story.run
    name = story.called(run.next_step) if run.next_step else "End"
    row = TimelineRow("next", name, marks.QUEUED, at=story.changed_at)
    if run.settling and run.status in ("running", "queued"):
        row.name, row.mark = "Settle", marks.SETTLING
        row.remarks = [Remark(after_settling(run.ending, run.next_step, story.called))]
    elif run.status == "running":
        row.mark = marks.RUNNING
        row.remarks = [Remark(f"attempt {run.attempts}")] if run.attempts > 1 else []
    elif run.status == "queued":
        if run.wake_at and run.wake_at > story.now:
            row.remarks = [Remark(f"tries again in {format_duration(run.wake_at - story.now)}")]
    elif run.status == "waiting" and not any(gate.status == "open" and gate.base == story.head for gate in story.gates):
        row.mark = marks.TIMER
        beside = any(gate.status == "open" for gate in story.gates)
        own = Remark(run.reason) if run.awaited or beside else Remark(quote=run.reason)
        row.remarks = [_of_wait(story.wait) if story.wait else own]
    elif run.status == "failed":
        row.mark = marks.FROZEN if run.frozen else marks.FAILED
    elif run.status == "cancelled":
        row.name, row.mark = "Cancel", marks.CANCELLED
        who = f"by {story.ended_by}" if story.ended_by else ""
        row.remarks = [Remark(f"{who}:" if who and run.reason else who, run.reason)] if who or run.reason else []
    else:
        return None
    if story.step_checkpoints and run.status in run.LIVE:
        row.remarks += _of_kept(story.step_checkpoints)
    return row if row.name else None


def _of_kept(step_checkpoints: Sequence[StepCheckpoint]) -> list[Remark]:
    """Say when the step last kept a value to go on from, and the names of those that it named (untrusted)."""
    names = ", ".join(checkpoint.name for checkpoint in reversed(step_checkpoints) if checkpoint.name)
    newest = Remark("goes on after a crash from a value kept", at=step_checkpoints[0].at)
    return [newest, *([Remark("kept:", names)] if names else [])]


def _of_wait(wait: Wait) -> Remark:
    if wait.kind == Wait.Kind.TIMER:
        return Remark("until", at=wait.due)
    signal = f"for the signal {quote_titles([wait.name])}"
    return Remark(f"{signal}, at the latest until" if wait.due else signal, at=wait.due)


def after_settling(ending: str, next_step: str, called: Called) -> str:
    """Return what a run does once its effects are settled: end in the status `ending`, or go on."""
    if not ending:
        there = f"then the run goes on with {quote_titles([called(next_step)])}"
        return there if next_step else "then the run goes on"
    return {
        "completed": "then the run completes",
        "cancelled": "then the run is cancelled",
        "failed": "then the run fails",
    }[ending]


def of_planned(step: StepSpec, *, over: bool) -> TimelineRow:
    """Return the row of a step that has not run; once the run is `over` it never will."""
    row = TimelineRow(f"ahead-{step.name}", step.title, marks.NEVER if over else marks.AHEAD)
    if step.kind == "gate" and not over:
        row.remarks.append(Remark("asks people"))
    elif step.kind == "effect" and step.irreversible and not over:
        row.remarks.append(Remark("cannot be undone once it has run"))
    return row
