"""Computes the impact from the facts."""

from __future__ import annotations

from approvals.engine_rules.gates import holds_up
from approvals.engine_rules.steps import at_guard
from checkpoints.runs.plans import StepSpec

from . import asking, performing, steps
from .facts import MoveTarget, RecordedHistory
from .leaving import left, questions
from .records import Records
from .repairing import finished
from .result import Impact, ImpactVerdict
from .walk import Walk

VISIT = {"step": steps.step, "gate": asking.gate, "effect": performing.effect}


def impact(history: RecordedHistory, target: MoveTarget) -> Impact:
    """Compute what would happen if the run went on as `target` says."""
    walk = Walk.begin(Records(history, target), target)
    at: str | None = target.next_step
    forced = target.forced
    while at:
        at, forced = _visit(walk, at, forced=forced), False
    if at == "" and target.asking:
        walk.over((), frozenset(target.asking))
    asked = questions(walk)
    ends = at == "" and walk.ahead is None and not asked
    rows = (*finished(walk), *asked, *left(walk))
    return Impact(rows=rows, asks=walk.asks, ends=ends, titles=history.plan.titles, beside=tuple(target.asking))


def _visit(walk: Walk, name: str, *, forced: bool) -> str | None:
    spec = walk.flow.steps.get(name)
    if spec is None:  # the plan no longer has the step: nothing can be predicted
        walk.over(walk.flow.steps, frozenset())
        return None
    held_by = [gate for gate in walk.target.asking if holds_up(walk.flow.plan, walk.flow.steps[gate], name)]
    if held_by:
        walk.over({name}, frozenset(held_by))
        return None
    if _guarded(walk, spec):
        walk.name(spec, ImpactVerdict.MAY, "guard", frozenset({name}), asks=True)
        walk.state.blur(spec.writes, frozenset({name}))
        walk.over({name}, frozenset({name}))
        return None
    return VISIT[spec.kind](walk, spec, forced=forced)


def _guarded(walk: Walk, spec: StepSpec) -> bool:
    """Tell whether the step may have reached its loop guard on this path."""
    if not spec.loop_guard:
        return False
    times = sum(entry.step == spec.name for entry in walk.path)
    return at_guard(spec, times) or bool(spec.catch) or spec.name in walk.blurred
