"""Small plans, and histories of their runs, for the tables of tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from approvals.engine_rules.steps import last_start
from approvals.impact import Impact, impact
from approvals.impact.choices import GateChoices, SavedState
from approvals.impact.facts import MoveTarget
from checkpoints.runs.plans import PlanSpec, StepSpec

from .model import Engine, Gate, Method, Point


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


def engine(spec: PlanSpec, methods: Mapping[str, Method]) -> Engine:
    """Runs of a plan; a gate asks unless its method says otherwise, any other step without one writes nothing."""
    known = {each.name: (lambda engine, *read: True) if each.kind == "gate" else _nothing for each in spec.steps}
    return Engine(spec, {**known, **methods})


def gives(**writes: Any) -> Method:
    """A step that always writes the same."""
    return lambda engine, *read: (writes, None)


def _nothing(engine: Engine, *read: Any) -> Any:
    return {}, None


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


def at(engine: Engine, run: int, next_step: str) -> Point:
    """The last checkpoint of a run from which it went on with that step."""
    found = [point for point in engine.points.values() if point.run == run and point.next_step == next_step]
    return found[-1]


def rewind(engine: Engine, run: int, to: str) -> Impact:
    """What sending the run back to a step would do."""
    return impact(engine.history(run), engine.target_of(run, at(engine, run, to).id, "rewind", {}))


def edit(engine: Engine, run: int, before: str, **writes: Any) -> Impact:
    """What changing the state before a step would do."""
    return impact(engine.history(run), engine.target_of(run, at(engine, run, before).id, "edit", writes))


def fork(engine: Engine, run: int, before: str, **writes: Any) -> Impact:
    """What a fork from before a step would do."""
    return impact(engine.history(run), engine.target_of(0, at(engine, run, before).id, "edit", writes))


def approve(engine: Engine, asking: Gate, **writes: Any) -> Impact:
    """What a yes would do, with an edit."""
    history, now = engine.history(asking.run), saved(engine, asking).with_writes(writes)
    return impact(history, agreeing(engine, asking, now, writes, "edited" if writes else "approved"))


def agreeing(engine: Engine, asking: Gate, now: SavedState, edited: Mapping[str, Any], decision: str) -> MoveTarget:
    """Where a yes leads, `now` with its edit."""
    history, fact = engine.history(asking.run), engine.fact(asking)
    choices = GateChoices(history, fact, now)
    start = choices.reached(edited.keys())
    if start is None:
        return choices.approving(grants=engine.given(asking, edited), decision=decision)
    at = engine.point(start.parent)
    before = SavedState(at.state, at.fields)
    return choices.asking_anew(start, touched=edited.keys(), before=before, decision=decision)


def stop(engine: Engine, asking: Gate) -> Impact:
    history = engine.history(asking.run)
    return impact(history, GateChoices(history, engine.fact(asking), saved(engine, asking)).stopping())


def back(engine: Engine, asking: Gate, to: str) -> Impact:
    history, fact = engine.history(asking.run), engine.fact(asking)
    start = last_start(history.head.path, to)
    before = None if start is None else engine.point(start.parent)
    state = None if before is None else SavedState(before.state, before.fields)
    return impact(history, GateChoices(history, fact, saved(engine, asking)).going_back(to, before=state))


def saved(engine: Engine, asking: Gate) -> SavedState:
    head = engine.points[engine.runs[asking.run].head]
    return SavedState(head.state, head.fields)


def waiting(engine: Engine, run: int) -> Gate:
    """The gate at which the run waits, once it has run that far."""
    engine.drive(run)
    found = engine.open_gate(run)
    assert found is not None
    return found


def agree(engine: Engine, run: int, **writes: Any) -> None:
    """Run to the next gate, agree there, and run on."""
    engine.decide(waiting(engine, run), "edited" if writes else "approved", patch=writes)
    engine.drive(run)
