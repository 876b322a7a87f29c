"""The head of a run's page: one word for its status, and figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from agents.presentation.timeline.effect_fates import fates_of
from agents.presentation.timeline.facts import Story, TimelineEffect, TimelineGate
from agents.presentation.timeline.gate_words import Called
from agents.presentation.timeline.marks import TimelineMark
from agents.presentation.timeline.pending import after_settling
from agents.presentation.timeline.words import format_duration
from approvals.english import count_of, quote_titles
from approvals.preflight.facts import RemoteProgram
from approvals.presentation.drawing.times import lasting
from checkpoints.models import Run
from checkpoints.runs.plans import in_words

STATUS = {
    "queued": TimelineMark("", "ahead", "clock", "Queued"),
    "running": TimelineMark("", "running", "play", "Running"),
    "waiting": TimelineMark("", "waiting", "clock", "Waiting"),
    "completed": TimelineMark("", "completed", "check", "Completed"),
    "failed": TimelineMark("", "failed", "warn", "Failed"),
    "cancelled": TimelineMark("", "cancelled", "x", "Cancelled"),
}


@dataclass(frozen=True, slots=True)
class HeadCell:
    """One cell of the head: its label, the fact, a line below it, and a link to more."""

    label: str
    fact: str
    line: str = ""
    place: str = ""  # the fragment of the page with more


def status(run: Run, asking: Sequence[str] = (), called: Called = in_words) -> TimelineMark:
    """Return the word for the run as a whole: "Held at “Review”", "Running “Propose”", "Frozen".

    `asking`: the steps of the gates that hold it.
    """
    plain = STATUS[run.status]
    if asking and run.status == "waiting":
        return TimelineMark("", "waiting", "hold", f"Held at {quote_titles(map(called, asking))}")
    if run.frozen:
        return TimelineMark("", "failed", "warn", "Frozen")
    if run.settling:
        return TimelineMark("", "running", "undo", "Settling its effects")
    if run.status in ("running", "failed") and run.next_step:
        word = (
            f"Failed at {quote_titles([called(run.next_step)])}"
            if run.status == "failed"
            else f"Running {quote_titles([called(run.next_step)])}"
        )
        return TimelineMark("", plain.status, plain.icon, word)
    return plain


def status_line(story: Story, gate: TimelineGate | None) -> str:
    """Return the line under the status word, after its duration."""
    run, now, called = story.run, story.now, story.called
    if gate and run.status == "waiting":
        parts = []
        if gate.quorum > 1:
            agreed = sum(decision.counts and decision.verdict != "reject" for decision in gate.decisions)
            parts.append(f"{agreed} of {gate.quorum} approved")
        if gate.deadline:
            left = f"{lasting(gate.deadline - now)} left"
            parts.append("past its deadline" if gate.deadline <= now else left)
        return ", ".join([*parts, *(["settling its effects"] if run.settling else [])])
    if run.settling:
        return after_settling(run.ending, run.next_step, called)
    if run.halt and run.status == "running":
        return "will stop after this step, as a person asked"
    if run.status == "queued":
        waits = run.wake_at is not None and run.wake_at > now
        step = quote_titles([called(run.next_step)])
        if waits:
            return f"tries {step} again soon"
        return f"{step} is next" if run.next_step else ""
    if story.wait is not None:
        return f"at {quote_titles([called(run.next_step)])}"
    if run.status == "running":
        attempt = f"attempt {run.attempts}" if run.attempts > 1 else ""
        return ", ".join(filter(None, [attempt, _held_by(story.program) if story.program else ""]))
    return ""


def _held_by(program: RemoteProgram) -> str:
    """Name the external program that has the run, and tell if it is silent."""
    claimed = f"claimed by {quote_titles([program.name]) if program.name else 'its program'}"
    return f"{claimed}, which has sent nothing for {program.heard}" if program.missed else claimed


def ends_by(story: Story) -> datetime | None:
    """Return the deadline of a run that lives."""
    return story.run.deadline if story.run.status in Run.LIVE else None


def since(story: Story, gate: TimelineGate | None) -> datetime | None:
    """Return the time since which the status word is true, if that is worth showing."""
    if gate and story.run.status == "waiting":
        return gate.opened_at
    return story.changed_at if story.run.status in ("completed", "failed", "cancelled") else None


def worked(took: timedelta, time_at_gates: timedelta, checkpoints: int, reused: int = 0) -> HeadCell:
    """Return how long the steps took, how long the run was held, and how many steps were reused."""
    saved = count_of(checkpoints, "checkpoint")
    waited = f"held for {format_duration(time_at_gates)}" if time_at_gates else ""
    spared = f"{count_of(reused, 'step')} reused"
    return HeadCell("Worked", format_duration(took), ", ".join(filter(None, [saved, waited, spared if reused else ""])))


# The groups under the figure, in this order; "final" is done or kept, and cannot be undone.
OUTSIDE: tuple[tuple[str, str], ...] = (
    ("done", "done"),
    ("unknown", "unknown"),
    ("unsettled", "to be settled"),
    ("undone", "undone"),
    ("kept", "kept"),
    ("final", "cannot be undone"),
    ("abandoned", "ordered again"),
)


def outside(effects: Sequence[TimelineEffect], *, by_tools: bool = False) -> HeadCell:
    """Return what the run did in the outside world. An undo is counted with its effect, never by itself.

    `by_tools`: its steps call tools, whose effects are not recorded.
    """
    performed = [fate.effect for fate in fates_of(effects) if fate.effect.status != "failed"]
    if not performed and by_tools:
        words = "its tools act unrecorded"
        return HeadCell("External effects", "Not recorded", words)
    if not performed:
        return HeadCell("External effects", "No effects", "no external changes recorded")
    counts = Counter(_counted_as(done) for done in performed)
    parts = [f"{counts[name]} {word}" for name, word in OUTSIDE if counts[name]]
    number = len(performed)
    fact = count_of(number, "effect")
    return HeadCell("External effects", fact, ", ".join(parts), "effects")


def _counted_as(done: TimelineEffect) -> str:
    """Return the one group in which an effect is counted: the most important one."""
    if done.status in ("done", "kept") and done.irreversible:
        return "final"
    if done.status == "intended":
        return "unknown"
    return "unsettled" if done.status == "done" and done.unsettled else done.status
