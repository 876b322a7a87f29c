"""Rules for steps: reuse, loop guards, and the irreversible steps that a repair does not redo."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from checkpoints.runs.plans import PlanSpec, StepSpec
from checkpoints.store.header import CheckpointHeader
from checkpoints.values.checkpoint_kinds import OUTPUT_LANDED


def runs_anyway(spec: StepSpec, *, forced: bool) -> bool:
    """Tell whether a plain step runs despite a recorded output: a person sent the run to it, or it reads the world."""
    return forced or spec.reads_world


def fits(plan: PlanSpec, spec: StepSpec, next_step: str) -> bool:
    """Tell whether a recorded output fits this plan, in which the step may lead elsewhere."""
    return next_step in plan.successors(spec.name)


def last_start(path: Iterable[CheckpointHeader], step: str) -> CheckpointHeader | None:
    """Return the last execution of a step, to whose start the run is sent back; None where it never ran."""
    return next((place for place in reversed([*path]) if place.step == step and place.kind in OUTPUT_LANDED), None)


def at_guard(spec: StepSpec, times: int) -> bool:
    """Tell whether a person is asked before the step, which ran `times` times on this path, runs again."""
    return bool(spec.loop_guard) and times >= spec.loop_guard


def crosses_final(plan: PlanSpec, executed: Sequence[str], judged: StepSpec) -> bool:
    """Tell whether redoing these executions for `judged` might repeat an irreversible effect."""
    redone = plan.redone(executed, [judged.feedback] if judged.feedback else [])
    return any(plan.step(name).irreversible for name in redone)
