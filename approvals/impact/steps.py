"""Predicts a plain step or a gate on the walk.

A step stands, runs, or may run. A gate's earlier answer still holds, it asks, or it may ask.

A gate decides by what it reads whether there is anything to ask. One that asked, or had nothing to ask, on this very
input does the same again; any other is unknown, unless its plan says that it always asks.
"""

from __future__ import annotations

from approvals.engine_rules import effects as rules
from approvals.engine_rules import permissions
from checkpoints.errors import CheckpointError, ValueRefused
from checkpoints.runs.plans import StepSpec
from checkpoints.store.loading import CheckpointHeader
from checkpoints.values.checkpoint_kinds import OUTPUT_LANDED

from .facts import REJECTED, GateFact
from .records import NOTHING, KnownValue, StepInput, Steps, matching, may_match
from .result import ImpactVerdict
from .walk import Walk

WILL, MAY, STANDS = ImpactVerdict.WILL, ImpactVerdict.MAY, ImpactVerdict.STANDS


def predict_step(walk: Walk, spec: StepSpec, *, forced: bool) -> str | None:
    """Add the step's row; return the step where the walk goes on, or None."""
    reading = walk.state.reading(spec)
    if rules.runs_anyway(spec, forced=forced):
        return _runs(walk, spec, reading, "forced" if forced else "world")
    twins = [each for each in walk.records.every(spec) if each.kind in OUTPUT_LANDED]
    found = [] if walk.unbranched else matching(twins, reading, walk.counts)
    at = walk.occurrence(reading)
    if at is not None:
        twin = next((each for each in reversed(found) if each.occurrence == at), None)
        return _runs(walk, spec, reading, walk.records.why(spec)) if twin is None else _twin(walk, spec, reading, twin)
    if not found:
        return _runs(walk, spec, reading, "novel" if reading.novel else walk.records.why(spec))
    return _may_run(walk, spec, reading, reading.on, "reads")


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
        return _may_run(walk, spec, reading, NOTHING, "same")
    try:
        walk.state.write(writes)
    except ValueRefused:
        return _may_run(walk, spec, reading, NOTHING, "same")
    walk.name(spec, STANDS, "same")
    walk.landed(spec, reading)
    return twin.next_step


def _runs(walk: Walk, spec: StepSpec, reading: StepInput, why: str) -> str | None:
    walk.name(spec, WILL, why)
    walk.landed(spec, reading)
    return walk.gave(spec, frozenset({spec.name}))


def _may_run(walk: Walk, spec: StepSpec, reading: StepInput, on: Steps, why: str) -> str | None:
    walk.name(spec, MAY, why, on)
    walk.landed(spec, reading)
    return walk.gave(spec, on)


def predict_gate(walk: Walk, spec: StepSpec, *, forced: bool) -> str | None:
    """Add the gate's row; return the step where the walk goes on, or None."""
    reading = walk.state.reading(spec)
    if reading.digest is None:
        return _of_unknown(walk, spec, reading, forced=forced)
    passed = any(each.input_digest == reading.digest for each in walk.records.passes(spec))
    asked = [each for each in walk.records.asked(spec.name) if each.input_digest == reading.digest]
    drawn = [each for each in asked if each.code_hash == bytes.fromhex(spec.code_hash)]
    if passed and drawn:
        return _may(walk, spec, frozenset({spec.name}))
    said = False if passed else None
    if not (passed or drawn or spec.asks):  # the gate's own method, if it can be called, says about the known fields
        known = {name: each.value for name in spec.reads if isinstance(each := walk.state.fields.get(name), KnownValue)}
        said = walk.records.history.draws(spec.name, known)
    if said is False and (passed or not forced):
        return _passes(walk, spec, reading, forced=forced)
    surely = bool(drawn) or spec.asks or bool(said)
    if forced:
        return _asks(walk, spec, "forced") if surely else _may(walk, spec, frozenset({spec.name}))
    return _again(walk, spec, reading, asked, surely=surely)


def _passes(walk: Walk, spec: StepSpec, reading: StepInput, *, forced: bool) -> str:
    """Pass the gate, which has nothing to ask; it stands where the same is recorded."""
    at = walk.occurrence(reading)
    found = [] if forced or walk.unbranched else matching(walk.records.every(spec), reading, walk.counts)
    twins = [each for each in found if at is None or each.occurrence == at]
    verdict = WILL if not twins else STANDS if at is not None and walk.branched else MAY
    walk.name(spec, verdict, "same" if twins else "forced" if forced else walk.records.why(spec))
    walk.landed(spec, reading)
    return walk.flow.plan.passed(spec.name)


def _again(walk: Walk, spec: StepSpec, reading: StepInput, asked: list[GateFact], *, surely: bool) -> str | None:
    """Reuse the newest closed gate that showed the same: where its approval still holds, nobody is asked."""
    perhaps = unsure = False  # whether one that is as new, or newer, may show the same
    known = [] if walk.unbranched else asked
    closed = [each for each in known if each.execution and each.kind in (*permissions.AGREED, REJECTED)]
    for each in closed:
        same = _same(walk, spec, each)
        holds = _holds(walk, each)
        if same is True:
            if holds is True and not unsure and walk.branched:
                return _standing(walk, spec, reading, each)
            perhaps = perhaps or holds is not False
            break
        unsure = unsure or same is None
        perhaps = perhaps or (same is None and holds is not False)
    if perhaps or not surely:
        return _may(walk, spec, frozenset({spec.name}))
    return _asks(walk, spec, "permit" if closed and closed[0].kind in permissions.AGREED else walk.records.why(spec))


def _of_unknown(walk: Walk, spec: StepSpec, reading: StepInput, *, forced: bool) -> str | None:
    """Judge a gate with unknown input: it certainly asks where no recorded answer or pass could replace asking."""
    asked = [] if forced or walk.unbranched else walk.records.asked(spec.name)
    earlier = [
        each
        for each in asked
        if each.kind in permissions.AGREED and _same(walk, spec, each) is not False and may_match(each, reading)
    ]
    passes = any(may_match(each, reading) for each in walk.records.passes(spec))
    if spec.asks and not earlier and not passes:
        return _asks(walk, spec, "forced" if forced else "novel" if reading.novel else walk.records.why(spec))
    return _may(walk, spec, reading.on or frozenset({spec.name}))


def _asks(walk: Walk, spec: StepSpec, why: str) -> str | None:
    walk.name(spec, WILL, why, asks=True)
    return walk.stop(spec) if spec.waits else _goes_on(walk, spec, frozenset({spec.name}))


def _may(walk: Walk, spec: StepSpec, on: Steps) -> str | None:
    walk.name(spec, MAY, "reads", on, asks=True)
    return _goes_on(walk, spec, on | {spec.name})


def _goes_on(walk: Walk, spec: StepSpec, on: Steps) -> str | None:
    """End the walk at a gate where the run may go on: nothing after it is certain."""
    walk.state.blur(permissions.told_at(spec), on)
    return walk.over(walk.flow.plan.successors(spec.name), on)


def _same(walk: Walk, spec: StepSpec, gate: GateFact) -> bool | None:
    """Tell whether the gate would show the same as the earlier one; None where that cannot be known."""
    if not gate.current:
        return False
    if gate.code_hash != bytes.fromhex(spec.code_hash) or spec.observes or (shown := gate.fields()) is None:
        return None
    now = [walk.state.digest(name) for name in shown]
    if any(found is not None and found != was for found, was in zip(now, shown.values(), strict=True)):
        return False
    return None if None in now else True


def _holds(walk: Walk, gate: GateFact) -> bool | None:
    """Tell whether people approved, and all that they allowed is done and wanted; None where that may change first."""
    own = {row.id: row for row in walk.records.own}
    used = {grant.used_by for grant in gate.grants if grant.used_by}
    if not permissions.stands(gate.kind, map(own.get, used)):
        return False
    walked = {entry.step for entry in walk.walked}
    unused = {grant.effect for grant in gate.grants if not grant.used_by}
    if not unused <= walked:
        return False
    return None if unused or used & walk.shaky.keys() else True


def _standing(walk: Walk, spec: StepSpec, reading: StepInput, gate: GateFact) -> str | None:
    saved = next((each.id for each in walk.records.history.executions if each.id == gate.execution), None)
    if saved is None or not spec.waits:  # the decision that is previewed; or one that was saved elsewhere
        return _may(walk, spec, frozenset({spec.name}))
    try:
        walk.state.write(walk.records.history.writes(saved))
    except (CheckpointError, ValueRefused):
        return _may(walk, spec, frozenset({spec.name}))
    walk.name(spec, STANDS, "same")
    walk.landed(spec, reading)
    return walk.flow.plan.next_after(spec.name)
