"""Small plans, and the impacts of choices in what was recorded of them, for the tables of tests."""

from __future__ import annotations

from typing import Any

from approvals.engine_rules.effects import last_start
from approvals.impact import Impact, impact
from approvals.impact.choices import GateChoices
from approvals.impact.facts import MoveTarget
from checkpoints.runs.plans import PlanSpec, StepSpec
from tests.approvals.impact.recorded import Recorded


def plan(*steps: StepSpec) -> PlanSpec:
    """A plan of these steps; each has some code."""
    return PlanSpec("robo", "1", steps=steps)


def step(name: str, reads: str = "", writes: str = "", **more: Any) -> StepSpec:
    return StepSpec(name, reads=tuple(reads.split()), writes=tuple(writes.split()), code_hash="ab", **more)


def effect(name: str, reads: str = "", writes: str = "", **more: Any) -> StepSpec:
    undo = "" if more.get("irreversible") else "undo"
    return step(name, reads, writes, kind="effect", undo=undo, **more)


def gate(name: str, reads: str = "", **more: Any) -> StepSpec:
    return step(name, reads, kind="gate", **more)


def said(told: Impact, *, kept: bool = False) -> list[str]:
    """The rows in words: "will pay", "may reply on pay", "asks review"."""
    rows = told.rows if kept else told.ahead
    words = []
    for row in rows:
        verdict = "asks" if row.asks and str(row.verdict) == "will" else str(row.verdict)
        if row.asks and str(row.verdict) == "may":
            verdict = "may ask"
        words.append(f"{verdict} {row.step}" + (f" on {', '.join(row.on)}" if row.on else ""))
    return words


def rewind(made: Recorded, to: str) -> Impact:
    return impact(made.history(), made.target(to, rewind=True))


def edit(made: Recorded, before: str, **writes: Any) -> Impact:
    """What changing the state before a step would do; the input for ""."""
    return impact(made.history(), made.target(before, **writes))


def fork(made: Recorded, before: str, **writes: Any) -> Impact:
    return impact(made.history(), made.target(before, fork=True, **writes))


def choices(made: Recorded, **writes: Any) -> GateChoices:
    """The choices at the newest gate, with an edit."""
    return GateChoices(made.history(), made.gates[-1], made.now.with_writes(writes))


def approve(made: Recorded, **writes: Any) -> Impact:
    found, decision = choices(made, **writes), "edited" if writes else "approved"
    start = found.reached(writes.keys())
    if start is None:
        return impact(found.history, found.approving(grants=made.given(writes), decision=decision))
    assert start.parent is not None
    before = made.states[start.parent]
    return impact(found.history, found.asking_anew(start, touched=writes.keys(), before=before, decision=decision))


def stop(made: Recorded) -> Impact:
    found = choices(made)
    return impact(found.history, found.stopping())


def going_back(made: Recorded, to: str) -> MoveTarget:
    """Where a rejection that sends the run back to a step leads."""
    found = choices(made)
    start = last_start(found.history.head.path, to)
    return found.going_back(to, before=None if start is None or start.parent is None else made.states[start.parent])


def back(made: Recorded, to: str) -> Impact:
    return impact(made.history(), going_back(made, to))
