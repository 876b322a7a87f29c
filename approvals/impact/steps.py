"""Predicts a plain step on the walk: it stands, runs, or may run."""

from __future__ import annotations

from approvals.engine_rules import effects as rules
from checkpoints.errors import CheckpointError, ValueRefused
from checkpoints.runs.plans import StepSpec
from checkpoints.store.loading import CheckpointHeader

from .records import NOTHING, StepInput, Steps, matching
from .result import ImpactVerdict
from .walk import Walk

WILL, MAY, STANDS = ImpactVerdict.WILL, ImpactVerdict.MAY, ImpactVerdict.STANDS


def step(walk: Walk, spec: StepSpec, *, forced: bool) -> str | None:
    """Add the step's row; return the step where the walk goes on, or None."""
    reading = walk.state.reading(spec)
    if rules.runs_anyway(spec, forced=forced):
        return _runs(walk, spec, reading, "forced" if forced else "world")
    found = [] if walk.unbranched else matching(walk.records.twins(spec), reading, walk.counts)
    at = walk.occurrence(reading)
    if at is not None:
        twin = next((each for each in reversed(found) if each.occurrence == at), None)
        return _runs(walk, spec, reading, walk.records.why(spec)) if twin is None else _twin(walk, spec, reading, twin)
    if not found:
        return _runs(walk, spec, reading, "novel" if reading.novel else walk.records.why(spec))
    return _perhaps(walk, spec, reading, reading.on, "reads")


def _twin(walk: Walk, spec: StepSpec, reading: StepInput, twin: CheckpointHeader) -> str | None:
    """Reuse the output of an execution with this very input, where it can be applied."""
    try:
        writes = walk.records.history.writes(twin.id)
    except CheckpointError:
        return _runs(walk, spec, reading, walk.records.why(spec))
    known = walk.flow.plan.state_schema.get("properties")
    fits = rules.fits(walk.flow.plan, spec, twin.next_step)
    if not fits or (known is not None and any(name not in known for name in writes)):
        return _runs(walk, spec, reading, walk.records.why(spec))
    if twin.run_id != walk.target.run and not walk.branched:
        return _perhaps(walk, spec, reading, NOTHING, "same")
    try:
        walk.state.write(writes)
    except ValueRefused:
        return _perhaps(walk, spec, reading, NOTHING, "same")
    walk.name(spec, STANDS, "same")
    walk.landed(spec, reading)
    return twin.next_step


def _runs(walk: Walk, spec: StepSpec, reading: StepInput, why: str) -> str | None:
    walk.name(spec, WILL, why)
    walk.landed(spec, reading)
    return walk.gave(spec, frozenset({spec.name}))


def _perhaps(walk: Walk, spec: StepSpec, reading: StepInput, on: Steps, why: str) -> str | None:
    walk.name(spec, MAY, why, on)
    walk.landed(spec, reading)
    return walk.gave(spec, on)
