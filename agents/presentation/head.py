"""The head of a run's page: one word for its status, and four figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from agents.presentation.timeline.effect_fates import fates
from agents.presentation.timeline.facts import Asked, Done, Standing
from agents.presentation.timeline.gate_words import Called
from agents.presentation.timeline.marks import Mark
from agents.presentation.timeline.pending import after_settling
from agents.presentation.timeline.words import duration
from approvals.english import counted, quoted
from approvals.preflight.facts import Program
from approvals.presentation.drawing.times import lasting
from checkpoints.runs.plans import in_words

STATUS = {
    "queued": Mark("", "ahead", "clock", "Queued"),
    "running": Mark("", "running", "play", "Running"),
    "waiting": Mark("", "waiting", "clock", "Waiting"),
    "completed": Mark("", "completed", "check", "Completed"),
    "failed": Mark("", "failed", "warn", "Failed"),
    "cancelled": Mark("", "cancelled", "x", "Cancelled"),
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One ruled cell: its label, the fact, a line below it, and where there is more."""

    label: str
    fact: str
    line: str = ""
    place: str = ""  # the fragment of the page that tells more


def status(run: Standing, gate: Asked | None, called: Called = in_words) -> Mark:
    """Return the word for the run as a whole: "Held at “Review”", "Running “Propose”", "Frozen"."""
    plain = STATUS[run.status]
    if gate and run.status == "waiting":
        return Mark("", "waiting", "hold", f"Held at {quoted([called(gate.step)])}")
    if run.frozen:
        return Mark("", "failed", "warn", "Frozen")
    if run.ending:
        return Mark("", "running", "undo", "Settling its effects")
    if run.status in ("running", "failed") and run.next_step:
        between = " at " if run.status == "failed" else " "
        return Mark("", plain.status, plain.icon, f"{plain.word}{between}{quoted([called(run.next_step)])}")
    return plain


def status_line(run: Standing, gate: Asked | None, now: datetime, called: Called = in_words) -> str:
    """Return the line under the status word, after the time that it has been so."""
    if gate and run.status == "waiting":
        parts = []
        if gate.quorum > 1:
            agreed = sum(said.counts and said.verdict != "reject" for said in gate.said)
            parts.append(f"{agreed} of {gate.quorum} agreed")
        if gate.deadline:
            parts.append("past its deadline" if gate.deadline <= now else f"{lasting(gate.deadline - now)} left")
        return ", ".join([*parts, *(["settling its effects"] if run.ending else [])])
    if run.ending:
        return after_settling(run.ending, run.next_step, called)
    if run.halting:
        return "was asked to stop, and does after this step"
    if run.status == "queued":
        waits = run.wake_at is not None and run.wake_at > now
        step = quoted([called(run.next_step)])
        return f"tries {step} again soon" if waits else f"{step} is next" if run.next_step else ""
    if run.status == "running":
        attempt = f"attempt {run.attempts}" if run.attempts > 1 else ""
        return ", ".join(filter(None, [attempt, _held_by(run.program) if run.program else ""]))
    return ""


def _held_by(program: Program) -> str:
    """Say which external program has the run, and that it is not heard of any more."""
    name = program.name or "its program"
    return f"{name} has it, not heard of for {program.heard}" if program.missed else f"{name} has it"


def since(run: Standing, gate: Asked | None) -> datetime | None:
    """Return the time from which the status word holds, where that is worth telling."""
    if gate and run.status == "waiting":
        return gate.opened_at
    return run.changed_at if run.status in ("completed", "failed", "cancelled") else None


def worked(took: timedelta, held: timedelta, checkpoints: int, reused: int = 0) -> Cell:
    """Say how long the steps took, how long people were waited for, and how many steps did not have to run."""
    waited = f"held {duration(held)}" if held else ""
    spared = f"{counted(reused, 'step')} reused" if reused else ""
    return Cell("Worked", duration(took), ", ".join(filter(None, [counted(checkpoints, "checkpoint"), waited, spared])))


# What is counted under the figure, in this order; "final" is done or left, and cannot be undone.
OUTSIDE = (
    ("done", "done"),
    ("unknown", "unknown"),
    ("unsettled", "to be settled"),
    ("undone", "undone"),
    ("kept", "left as it is"),
    ("final", "cannot be undone"),
    ("abandoned", "done again by order"),
)


def outside(effects: Sequence[Done]) -> Cell:
    """Say what the run did in the outside world. An undo is counted with what it undid, never by itself."""
    performed = [fate.effect for fate in fates(effects) if fate.effect.status != "failed"]
    if not performed:
        return Cell("Outside world", "No effects", "nothing outside has changed")
    counts = Counter(_counted_as(done) for done in performed)
    parts = [f"{counts[name]} {word}" for name, word in OUTSIDE if counts[name]]
    return Cell("Outside world", counted(len(performed), "effect"), ", ".join(parts), "effects")


def _counted_as(done: Done) -> str:
    """Count each effect once, by what matters most about it."""
    if done.status in ("done", "kept") and done.irreversible:
        return "final"
    if done.status == "intended":
        return "unknown"
    return "unsettled" if done.status == "done" and done.unsettled else done.status
