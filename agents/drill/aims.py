"""The moments of the kills: before each step, after it and before its save, after its save. Pure: a walk in, aims out.

A gate counts as two steps: opening it, and saving its outcome.
"""

from __future__ import annotations

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
}


class DrillStep(NamedTuple):
    """One step of the undisturbed run, its kind (a key of POINTS), and the three moments to kill it."""

    step: str
    what: str
    aims: tuple[Aim, Aim, Aim]


def targets(plan: PlanSpec, turns: Sequence[WorkerTurn], executions: Sequence[DrilledExecution]) -> list[DrillStep]:
    """List a target for every execution of the undisturbed run, on all branches, in order."""
    found = []
    for turn in turns:
        landed = [each for each in executions if turn.before < each.seq <= turn.after]
        for number, each in enumerate(landed):
            what = "gate, decided" if each.asked else plan.step(each.step).kind.replace("gate", "gate, passed")
            hit = 1 + sum(1 for earlier in landed[:number] if earlier.step == each.step)
            found.append(_target(turn, each.step, what, hit))
        asked = next((each for each in executions if turn.asks and each.asked and each.seq == turn.after + 1), None)
        if asked is not None:
            found.append(_target(turn, asked.step, "gate, asking", 1))
    return found


def _target(turn: WorkerTurn, step: str, what: str, hit: int) -> DrillStep:
    first, second, third = (Aim(turn.before, turn.answered, f"{point}@{step}:kill:{hit}") for point in POINTS[what])
    return DrillStep(step, what, (first, second, third))
