"""Predicts an effect on the walk: one that was done with this very input is adopted, any other is performed.

Performing needs a permission where the effect is guarded: an unused grant of the last gate that could give one, for
exactly this. Without it the run goes back to that gate. Adopting needs none. A fork asks before it takes over an effect
of another run.

It also finds earlier effects that a choice would repeat; whoever decides so has to confirm each of them. Pure.

The impact covers the effects off the path of this run. This looks through the whole lineage: an effect that cannot be
undone is kept when the run goes elsewhere, and a fork performs again what its origin performed. An effect that the
choice undoes or takes over is no repeat. Nor is one on the path, unless the very same would be done again: in a loop
every turn may do another thing by the same step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from approvals.cards import binding
from approvals.cards.action import Action
from approvals.cards.verdicts import written
from approvals.engine_rules import permissions
from approvals.engine_rules.effects import adoptable, doubted, happened, repeatable
from checkpoints.errors import CheckpointError, ValueRefused
from checkpoints.runs.plans import PlanSpec, StepSpec
from checkpoints.values.canonical_json import encode_canonical

from .facts import EffectFact, GateFact, MoveTarget, RecordedHistory
from .records import KnownValue, StepInput, Steps, may_match
from .result import Impact, ImpactVerdict, Repeat
from .walk import AdoptionChance, Walk

WILL, MAY, STANDS = ImpactVerdict.WILL, ImpactVerdict.MAY, ImpactVerdict.STANDS


class Permit(NamedTuple):
    """A permission. `given`: whether the effect may be performed, None if unknown; `gate`: the one that would ask."""

    given: bool | None
    gate: str = ""


def effect(walk: Walk, spec: StepSpec, *, forced: bool) -> str | None:
    """Add the effect's row; return the step where the walk goes on, or None."""
    refused = _refused(walk, spec)
    if isinstance(refused, Action):
        return _pass_by(walk, spec, refused)
    if refused is None:
        here = frozenset({spec.name})
        walk.name(spec, MAY, "reads", here)
        walk.chances.append(AdoptionChance(walk.state.reading(spec), here))
        return _anywhere(walk, spec, here)
    reading = walk.state.reading(spec)
    at = walk.occurrence(reading)
    if at is None or reading.digest is None:
        return _of_unknown(walk, spec, reading)
    row = walk.records.newest.get((spec.name, reading.digest, at))
    if row is None:
        same = (reading.digest, at)
        foreign = [each for each in walk.foreign(spec.name) if (each.input_digest, each.occurrence) == same]
        return _take_over(walk, spec, foreign[-1]) if foreign else _perform(walk, spec, reading, "new")
    if forced and walk.target.again and adoptable(row):
        walk.records.order_again(row)
        return _perform(walk, spec, reading, "forced")
    if row.again:
        return _perform(walk, spec, reading, "forced")
    if adoptable(row):
        return _adopt(walk, spec, reading, row)
    if doubted(row):
        walk.name(spec, MAY, "doubt", frozenset({spec.name}), effect=row, asks=True)
        walk.chances.append(AdoptionChance(reading, frozenset({spec.name})))
        return _anywhere(walk, spec, frozenset({spec.name}))
    return _perform(walk, spec, reading, "new")


def _refused(walk: Walk, spec: StepSpec) -> Action | bool | None:
    """Find the refused action that the effect would perform here; False for none, None where unknown."""
    if not spec.guarded:
        return False
    last, now = _last_gate(walk, spec), _acting(walk, spec)
    if last is None or not any(each.effect == spec.name for each in last.refused):
        return False
    return None if now is None else permissions.refused_action(last.kind, last.refused, spec, now=now) or False


def _acting(walk: Walk, spec: StepSpec) -> str | None:
    """Return the id of the action that the effect would perform, of several; None where unknown."""
    found = walk.state.fields.get(spec.action)
    if found is None:
        return ""
    return permissions.acting(found.value) if isinstance(found, KnownValue) else None


def _pass_by(walk: Walk, spec: StepSpec, refused: Action) -> str | None:
    """Skip the effect: an earlier one is then off the path, and only an answer in its place is written."""
    writes = written(walk.flow.plan, refused)
    try:
        walk.state.write(writes)
    except ValueRefused:
        walk.state.blur(writes, frozenset({spec.name}))
    walk.name(spec, ImpactVerdict.SKIPPED, refused.settled_as)
    return walk.flow.plan.next_after(spec.name)


def _of_unknown(walk: Walk, spec: StepSpec, reading: StepInput) -> str | None:
    """Judge an effect with unknown input: it may be adopted where an earlier one could have the same input."""
    held = {(each.step, each.digest, each.occurrence) for each in walk.path}
    done = [
        row
        for row in [*walk.records.generations(spec.name), *walk.foreign(spec.name)]
        if (adoptable(row) or doubted(row))
        and (row.step, row.input_digest, row.occurrence) not in held and may_match(row, reading)
    ]  # fmt: skip
    if not done:
        return _perform(walk, spec, reading, "novel" if reading.novel else "new")
    on = reading.on or frozenset({spec.name})
    certain = all(row.run == walk.target.run and adoptable(row) for row in done)
    walk.name(spec, MAY, "reads", on, asks=not certain)
    walk.chances.append(AdoptionChance(reading, on))
    return _perhaps(walk, spec, reading, on, certain=certain)


def _adopt(walk: Walk, spec: StepSpec, reading: StepInput, row: EffectFact) -> str | None:
    """Adopt an effect with this very input: its result is taken, and nothing is performed."""
    if row.id in walk.shaky:
        on = walk.shaky[row.id]
        walk.name(spec, MAY, "reads", on, effect=row)
        walk.chances.append(AdoptionChance(reading, on))
        return _perhaps(walk, spec, reading, on, certain=True)
    try:
        writes, goto = row.returned()
        walk.state.write(writes)
    except (CheckpointError, ValueRefused):
        walk.name(spec, MAY, "adopted", frozenset({spec.name}), effect=row)
        walk.chances.append(AdoptionChance(reading, frozenset({spec.name})))
        return _anywhere(walk, spec, frozenset({spec.name}))
    walk.name(spec, STANDS, "adopted", effect=row)
    walk.adopted.add(row.id)
    walk.landed(spec, reading)
    return walk.flow.plan.next_after(spec.name) if goto is None else goto


def _perhaps(walk: Walk, spec: StepSpec, reading: StepInput, on: Steps, *, certain: bool) -> str | None:
    """Go on after an effect that is either adopted or performed; `certain`: nobody is asked about the earlier one."""
    permitted = permit(walk, spec).given and not walk.doubtful(spec)
    walk.settle(spec, on)
    if not (permitted and certain):
        return _anywhere(walk, spec, on)
    walk.landed(spec, reading)
    return walk.gave(spec, on)


def _perform(walk: Walk, spec: StepSpec, reading: StepInput, why: str) -> str | None:
    allowed = permit(walk, spec)
    if allowed.given is False:
        walk.name(spec, MAY, "permit", frozenset({allowed.gate}))
        asking = walk.flow.steps[allowed.gate]
        walk.name(asking, WILL, "permit", asks=True)
        walk.stop(asking)
        walk.ahead = frozenset({spec.name, asking.name, *(walk.ahead or ())})
        return None
    doubts = walk.doubtful(spec)
    if doubts or allowed.given is None:
        on = doubts or frozenset({allowed.gate})
        walk.name(spec, MAY, "doubt" if doubts else "permit", on, asks=bool(doubts))
        return _anywhere(walk, spec, on)
    walk.name(spec, WILL, why)
    walk.settle(spec, frozenset({spec.name}))
    walk.landed(spec, reading)
    return walk.gave(spec, frozenset({spec.name}))


def _take_over(walk: Walk, spec: StepSpec, row: EffectFact) -> str | None:
    """Ask about another run's effect: the answer says whether it is done once more."""
    here = frozenset({spec.name})
    walk.name(spec, MAY, "takeover", here, effect=row, asks=True)
    walk.state.blur(spec.writes, here)
    walk.asks, walk.ahead, walk.ahead_on = spec.name, walk.flow.ways[spec.name], here
    return None


def _anywhere(walk: Walk, spec: StepSpec, on: Steps) -> str | None:
    """Name all steps that may follow where the effect may be performed, or a person asked."""
    walk.state.blur(spec.writes, on)
    walk.settle(spec, on)
    return walk.over(walk.flow.ways[spec.name], on)


def permit(walk: Walk, spec: StepSpec) -> Permit:
    """Tell whether the effect has a permission for what it would do here."""
    if not spec.guarded:
        return Permit(True)
    asking = permissions.allowing(walk.flow.plan, spec.name)
    last = _last_gate(walk, spec)
    would_ask = permissions.reopened(walk.flow.plan, spec.name, last.step if last else "") if asking else spec.name
    if last is None:
        return Permit(False, would_ask)
    acting = _acting(walk, spec)
    if spec.action and acting is None:
        return Permit(None, would_ask)
    mine = [grant for grant in last.grants if grant.effect == spec.name]
    grants = [grant for grant in mine if not spec.action or grant.action == acting]
    unused = [grant for grant in grants if not grant.used_by]
    after = [each for each in walk.target.path if each.run_id == last.run and each.seq > last.seq]
    executed = len(permissions.executed_since(after, spec.name)) + sum(each.step == spec.name for each in walk.walked)
    known = 0 if spec.action else executed
    left = permissions.permission_left(given=len(grants), unused=len(unused), executed=known)
    if not (left and last.current):
        return Permit(False, would_ask)
    loose = binding.loose_names(walk.flow.plan, gate_step=last.step, effect=spec.name)
    since = next((at for at, each in enumerate(walk.target.path) if each.id == last.execution), -1)
    if permissions.changed_by_hand([each for each in walk.target.by_hand if each.at > since], loose):
        return Permit(False, would_ask)
    approved = [grant.fields() for grant in unused]
    covered = all(
        fields is not None and all(walk.state.digest(name) == was for name, was in fields.items())
        for fields in approved
    )
    # It is not known here which of several actions those executions performed.
    return Permit(True if covered and not (spec.action and executed) else None, would_ask)


def _last_gate(walk: Walk, spec: StepSpec) -> GateFact | None:
    """Find the newest gate on the path that could allow it, or that asked about it."""
    on_path = [gate for gate in walk.records.gates if gate.id in walk.target.gates]
    newest = sorted(on_path, key=lambda gate: gate.id, reverse=True)
    return permissions.last_allowing(newest, walk.flow.plan, spec, now=_acting(walk, spec))


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
                repeat = Repeat(
                    effect=fact.id, step=step, action=action, titles=titles(history.plan, step, mine), run=fact.run,
                    checkpoint=fact.landed, at=fact.at, done=happened(fact), certain=certain,
                    irreversible=fact.irreversible,
                )  # fmt: skip
                found.append(repeat)
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
