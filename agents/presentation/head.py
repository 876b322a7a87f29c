"""The head of a run's page: one word for where it stands, and four figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from approvals.presentation.times import lasting

from .facts import Asked, Done, Standing
from .marks import Mark
from .words import counted, duration

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
    """One ruled cell: its label, the fact, and a line below it."""

    label: str
    fact: str
    line: str = ""


def status(run: Standing, gate: Asked | None) -> Mark:
    """The word for the run as a whole: "Held at review", "Running propose", "Frozen"."""
    plain = STATUS[run.status]
    if gate and run.status == "waiting":
        return Mark("", "waiting", "hold", f"Held at {gate.step}")
    if run.frozen:
        return Mark("", "failed", "warn", "Frozen")
    if run.status in ("running", "failed") and run.next_step:
        between = " at " if run.status == "failed" else " "
        return Mark("", plain.status, plain.icon, f"{plain.word}{between}{run.next_step}")
    return plain


def status_line(run: Standing, gate: Asked | None, now: datetime) -> str:
    """What stands under the status word, after the time that it has been so."""
    if gate and run.status == "waiting":
        parts = []
        if gate.quorum > 1:
            agreed = sum(said.counts and said.verdict != "reject" for said in gate.said)
            parts.append(f"{agreed} of {gate.quorum} agreed")
        if gate.deadline:
            parts.append("past its deadline" if gate.deadline <= now else f"{lasting(gate.deadline - now)} left")
        return ", ".join(parts)
    if run.status == "queued":
        waits = run.wake_at is not None and run.wake_at > now
        return f"tries {run.next_step} again soon" if waits else f"{run.next_step} is next" if run.next_step else ""
    if run.status == "running":
        return f"attempt {run.attempts}" if run.attempts > 1 else ""
    return ""


def since(run: Standing, gate: Asked | None) -> datetime | None:
    """From when the status word holds, where that is worth telling."""
    if gate and run.status == "waiting":
        return gate.opened_at
    return run.changed_at if run.status in ("completed", "failed", "cancelled") else None


def worked(took: timedelta, held: timedelta, checkpoints: int) -> Cell:
    """How long the steps took, and how long people were waited for."""
    waited = f"held {duration(held)}" if held else ""
    return Cell("Worked", duration(took), ", ".join(filter(None, [counted(checkpoints, "checkpoint"), waited])))


def outside(effects: Sequence[Done]) -> Cell:
    """What the run did in the outside world."""
    performed = [done for done in effects if done.status != "failed"]
    if not performed:
        return Cell("Outside world", "No effects", "nothing outside has changed")
    parts = []
    for names, words in (
        (("done",), "done"),
        (("unknown", "intended"), "unknown"),
        (("abandoned",), "done again by order"),
    ):
        count = sum(done.status in names for done in performed)
        if count:
            parts.append(f"{count} {words}")
    final = sum(done.irreversible and done.status == "done" for done in performed)
    if final:
        parts.append(f"{final} cannot be undone")
    return Cell("Outside world", counted(len(performed), "effect"), ", ".join(parts))
