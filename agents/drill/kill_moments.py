"""The moments of the kills: before each step, after it and before its save, after its save. Pure: a walk in, aims out.

A gate counts as two steps: opening it, and saving its outcome. So does a step that waits, for each of its waits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from checkpoints.runs.plans import PlanSpec

from .record import DrilledExecution
from .walk import Aim, WorkerTurn

BEFORE, UNSAVED, SAVED = MOMENTS = ("before it", "before its save", "after its save")
POINTS = {
    "step": ("before_step", "before_save", "after_commit"),
    "gate, passed": ("before_step", "before_save", "after_commit"),
    "effect": ("before_step", "after_effect", "after_commit"),
    "gate, asking": ("before_step", "before_gate", "after_gate"),
    "gate, decided": ("before_outcome", "before_save", "after_commit"),
    "step, waiting": ("before_step", "before_wait", "after_wait"),
    "step, gathering": ("before_step", "before_gather", "after_gather"),
}
WAITING = {"wait": "step, waiting", "gather": "step, gathering"}


class DrillStep(NamedTuple):
    """One step of the undisturbed run, its kind (a key of POINTS), and the three moments to kill it."""

    step: str
    what: str
    aims: tuple[Aim, Aim, Aim]


def targets(plan: PlanSpec, turns: Sequence[WorkerTurn], executions: Sequence[DrilledExecution]) -> list[DrillStep]:
    """List a target for every execution of the undisturbed run, on all branches, in order."""
    found, waited = [], Counter[tuple[str, str]]()  # by the step and what it waits for, since it last began
    for turn in turns:
        if turn.waits:
            begun = sum(number for (step, _), number in waited.items() if step == turn.step)
            waited[turn.step, turn.waits] += 1
            hit = waited[turn.step, turn.waits]
            found.append(_target(turn, turn.step, WAITING[turn.waits], hit, begun=begun + 1))
            continue
        landed = [execution for execution in executions if turn.before < execution.seq <= turn.after]
        for number, execution in enumerate(landed):
            planned = plan.step(execution.step).kind.replace("gate", "gate, passed")
            what = "gate, decided" if execution.asked else planned
            hit = 1 + sum(1 for earlier in landed[:number] if earlier.step == execution.step)
            begun = sum(waited.pop((execution.step, kind), 0) for kind in WAITING)
            found.append(_target(turn, execution.step, what, hit, begun=hit + begun))
        if turn.asks:
            asked = [execution.step for execution in executions if execution.asked and execution.seq == turn.after + 1]
            found += [_target(turn, step, "gate, asking", 1) for step in asked]
    return found


def _target(turn: WorkerTurn, step: str, what: str, hit: int, *, begun: int = 0) -> DrillStep:
    """Return the target; `begun`: how often the step begins by then, where it waited before."""
    hits = (begun or hit, hit, hit)
    points = zip(POINTS[what], hits, strict=True)
    first, second, third = (Aim(turn.before, turn.answered, f"{point}@{step}:kill:{at}") for point, at in points)
    return DrillStep(step, what, (first, second, third))
