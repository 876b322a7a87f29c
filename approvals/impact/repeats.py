"""Finds earlier effects that a choice would repeat; whoever decides so has to confirm each of them. Pure.

The impact covers the effects off the path of this run. This looks through the whole lineage: an effect that cannot be
undone is kept when the run goes elsewhere, and a fork performs again what its origin performed. An effect that the
choice undoes or takes over is no repeat. Nor is one on the path, unless the very same would be done again: in a loop
every turn may do another thing by the same step.
"""

from __future__ import annotations

from collections.abc import Sequence

from approvals.cards.action import Action
from approvals.engine_rules.effects import happened, repeatable
from checkpoints.runs.plans import PlanSpec
from checkpoints.values.canonical_json import encode_canonical

from .facts import EffectFact, MoveTarget, RecordedHistory
from .result import Impact, ImpactVerdict, Repeat


def repeats(
    history: RecordedHistory, target: MoveTarget, told: Impact, actions: Sequence[Action]
) -> tuple[Repeat, ...]:
    """List by step, oldest first, the effects that `told` would repeat. `actions` are the card's, as they would run."""
    coming: dict[str, bool] = {}
    for row in told.having(ImpactVerdict.WILL, ImpactVerdict.MAY, kind="effect"):
        if row.why != "takeover" and not row.asks_alone:
            coming[row.step] = coming.get(row.step, False) or row.verdict is ImpactVerdict.WILL
    taken = told.having(ImpactVerdict.UNDONE, ImpactVerdict.MAY_UNDONE, ImpactVerdict.STANDS)
    settled = {row.effect for row in taken}
    path = {each.id for each in target.path}
    found, done = [], repeatable(history.effects)
    for step, certain in coming.items():
        acting = [action for action in actions if action.effect == step and action.settled is None]
        for fact in (each for each in done if each.step == step and each.id not in settled):
            for action in _again(history, fact, acting, on_path=not path.isdisjoint(fact.landings)):
                mine = next((each for each in acting if each.id == action), None)
                found.append(_repeat(fact, action, titles(history.plan, step, mine), certain=certain))
    return tuple(found)


def titles(plan: PlanSpec, step: str, action: Action | None) -> tuple[str, ...]:
    """Return the titles of an effect: the step's, and the action's unless an external program wrote it."""
    said = action.title if action and not action.in_own_words(external=plan.external) else ""
    return tuple(filter(None, [plan.title_of(step), said]))


def _again(history: RecordedHistory, fact: EffectFact, acting: Sequence[Action], *, on_path: bool) -> list[str]:
    """List the ids of the actions that would repeat the effect; "" where no action of the card does."""
    spec = next((each for each in history.plan.steps if each.name == fact.step), None)
    several = bool(spec and spec.action)  # one step performs many actions: other arguments are no repeat
    if not (on_path or several):
        return [acting[0].id if acting else ""]
    if not acting or (was := fact.arguments()) is None:
        return []
    return [action.id for action in acting if encode_canonical(action.arguments) == was][:1]


def _repeat(fact: EffectFact, action: str, called: tuple[str, ...], *, certain: bool) -> Repeat:
    return Repeat(
        effect=fact.id, step=fact.step, action=action, titles=called, run=fact.run,
        checkpoint=fact.landed, at=fact.at, done=happened(fact), certain=certain,
        irreversible=fact.irreversible,
    )  # fmt: skip
