"""Steps: which are reused, which ran as often as they may, and over what a repair does not go back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from checkpoints.runs.plans import PlanSpec, StepSpec
from checkpoints.store.header import CheckpointHeader

EXECUTED = ("step", "reused")  # kinds of the checkpoints in which a step's output landed


def runs_anyway(spec: StepSpec, *, forced: bool) -> bool:
    """Tell whether a plain step runs whatever is recorded: a person sent the run to it, or it looks outside."""
    return forced or spec.reads_world


def fits(plan: PlanSpec, spec: StepSpec, next_step: str) -> bool:
    """Tell whether a recorded output fits this plan: another version may go elsewhere."""
    return next_step in plan.successors(spec.name)


def last_start(path: Iterable[CheckpointHeader], step: str) -> CheckpointHeader | None:
    """Return the last execution of a step, to whose start the run is sent back; None where it never ran."""
    return next((place for place in reversed([*path]) if place.step == step and place.kind in EXECUTED), None)


def at_guard(spec: StepSpec, times: int) -> bool:
    """Tell whether a person is asked before the step runs on one path for another time."""
    return bool(spec.loop_guard) and times >= spec.loop_guard


def crosses_final(plan: PlanSpec, executed: Sequence[str], judged: StepSpec) -> bool:
    """Tell whether redoing these executions for `judged` might do once more what cannot be undone."""
    redone = plan.redone(executed, [judged.feedback] if judged.feedback else [])
    return any(plan.step(name).irreversible for name in redone)
