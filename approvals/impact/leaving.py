"""Predicts what becomes of the effects that a choice leaves behind, up to the end of the run.

One that nothing ahead can adopt is undone, at the latest before the run ends. One that a step ahead may still adopt may
be undone. One that nothing takes back stays as it is. Decisions at later gates are not foreseen, except for edits that
do not send the run back.
"""

from __future__ import annotations

from approvals.engine_rules import effects, gates

from .facts import EffectFact
from .records import may_match
from .result import ImpactRow, ImpactVerdict
from .values import NOTHING, PredictedState, Steps
from .walk import Walk, undoable


def left(walk: Walk) -> list[ImpactRow]:
    """List a row for each effect that is off the path and not certainly adopted, newest first."""
    rows = [row for row in walk.records.own if _is_left(walk, row)]
    ahead = _ahead(walk)
    return [_row(walk, row, ahead) for row in sorted(rows, key=lambda row: row.id, reverse=True)]


def questions(walk: Walk) -> list[ImpactRow]:
    """List a row for each effect step of unknown outcome that people may be asked about before the run ends."""
    if walk.asks or walk.target.leave:
        return []
    steps = walk.in_order(row.step for row in walk.unsettled() if effects.unclear(row))
    told = {row.step for row in walk.rows if row.asks}
    return [
        ImpactRow(step=name, kind="effect", verdict=ImpactVerdict.MAY, on=(name,), why="unsettled", asks=True)
        for name in steps
        if name not in told
    ]


def _is_left(walk: Walk, row: EffectFact) -> bool:
    if row.id in walk.adopted or row.id in walk.target.awaited or walk.target.leave:
        return False
    return effects.left_behind(row, on_path=walk.records.carries(row))


def _row(walk: Walk, row: EffectFact, ahead: PredictedState | None) -> ImpactRow:
    may = effects.unclear(row)
    on: Steps = frozenset({row.step}) if may else NOTHING
    if not row.again:
        for chance in walk.chances:
            if chance.reading.step == row.step and may_match(row, chance.reading):
                may, on = True, on | chance.on
        if ahead is not None and _reachable(walk, row, ahead):
            may, on = True, on | walk.ahead_on
    verdict = ImpactVerdict.CANNOT if not undoable(row) else ImpactVerdict.MAY_UNDONE if may else ImpactVerdict.UNDONE
    return ImpactRow(
        step=row.step,
        kind="effect",
        verdict=verdict,
        on=walk.in_order(on),
        why="left",
        effect=row.id,
        irreversible=row.irreversible,
        again=row.again,
    )


def _ahead(walk: Walk) -> PredictedState | None:
    """Return the state after the walk, with fields that may still be written unknown; None if the run ends there."""
    if walk.ahead is None:
        return None
    after = PredictedState(dict(walk.state.fields), walk.state.config, walk.state.list_format)
    for name in walk.flow.reach(walk.ahead):
        spec = walk.flow.steps[name]
        words = [spec.feedback] if spec.feedback else []
        after.blur([*spec.writes, *words, *(gates.told_at(spec) if spec.kind == "gate" else ())], walk.ahead_on)
    return after


def _reachable(walk: Walk, row: EffectFact, ahead: PredictedState) -> bool:
    """Tell whether a step after the walk may adopt the effect."""
    if row.step not in walk.flow.reach(walk.ahead or ()):
        return False
    reading = ahead.reading(walk.flow.steps[row.step])
    return may_match(row, reading) and row.occurrence >= walk.counts[row.step, row.input_digest]
