"""Translates effects' states and results from another version of the agent to the one that runs now.

An effect's row names the checkpoint that it was started from, and has its result; both are of the version that ran
then, whose fields may have other names. The upcasters that upgrade a run's state to this version upgrade these too.
Where no upcaster leads on, nothing is guessed: UpcastFailed is raised, and the caller asks a person.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from uuid import UUID

from agents.definition import outputs, registry, upcast
from agents.definition.outputs import StepOutput
from agents.definition.upcast import UpcastPath
from agents.errors import UpcastFailed
from agents.models import Effect
from checkpoints import store
from checkpoints.models import Checkpoint, Plan
from checkpoints.runs.plans import spec_of
from checkpoints.store import Snapshot
from checkpoints.values.ops import DROP, Append, Splice, apply_write
from checkpoints.values.patch import are_same

State = dict[str, Any]


def packed(here: Snapshot, row: Effect, output: StepOutput) -> dict[str, Any]:
    """Pack the output of `row` under the plan of `here`; note that plan in it if another one started the effect."""
    data = outputs.packed(output)
    started = here.plan_id if row.base == here.id else _plan_at(row.base)
    return data if started == here.plan_id else data | {outputs.PLAN: here.plan_id}


def given_by(row: Effect, plan: Plan) -> bool:
    """Tell whether the effect's result was given under this very plan."""
    return _given(row) == plan.pk


def started_from(row: Effect, plan: Plan) -> State:
    """Return, for this plan, the state from which an effect was started. Raises UpcastFailed and NotVerified."""
    base = store.load_checkpoint(row.base)
    return _brought(base.state, base.plan_id, plan)


def left_by(row: Effect, plan: Plan) -> State:
    """Return the state as an effect left it: its start with its recorded result. Raises as `started_from`."""
    given = _given(row)
    base = store.load_checkpoint(row.base)
    there = plan if given == plan.pk else Plan.objects.get(pk=given)
    after = outputs.unpacked(row.returned).over(_brought(base.state, base.plan_id, there))
    return _brought(after, given, plan)


def readable(row: Effect, plan: Plan) -> bool:
    """Tell whether the effect's result can be upgraded to this version."""
    try:
        output_of(row, plan)
    except UpcastFailed:
        return False
    return True


def output_of(row: Effect, plan: Plan, *, base_plan: int | None = None) -> StepOutput:
    """Return an effect's result as an output of this version. Raises as `started_from`.

    A caller that knows under which plan its base was saved passes `base_plan`, and spares a query.
    """
    output = outputs.unpacked(row.returned)
    given = output.plan or base_plan or _plan_at(row.base)
    if given == plan.pk:
        return output
    old = Plan.objects.get(pk=given)
    base = store.load_checkpoint(row.base)
    before = _brought(base.state, base.plan_id, old)
    after, way = output.over(before), _way(old, plan)
    now = upcast.apply(way, after)
    writes = _written(output, after, upcast.apply(way, before), now, _writes_of(row.step, plan))
    return StepOutput(writes, None if output.goto is None else way.step(output.goto))


def writes_from(target: Snapshot, plan: Plan, writes: Mapping[str, Any]) -> State:
    """Return the writes that upgrade a saved state to this version, with `writes` over them. Raises UpcastFailed."""
    if target.plan_id == plan.pk:
        return dict(writes)
    now = _brought(target.state, target.plan_id, plan)
    made = difference(target.state, now)
    return made | {name: apply_write(now.get(name), write) if name in made else write for name, write in writes.items()}


def going_on_from(target: Snapshot, plan: Plan) -> tuple[str, State]:
    """Return the next step of this version after a saved state, and the writes that upgrade that. Raises UpcastFailed.

    Whatever the step is called by now, this version has it.
    """
    if target.plan_id == plan.pk:
        return target.next_step, {}
    way = _way(Plan.objects.get(pk=target.plan_id), plan)
    if way.lacks([target.next_step]):
        raise UpcastFailed(f"Version {plan.version} has no step {target.next_step}, and no upcaster names another")
    return way.step(target.next_step), writes_from(target, plan, {})


def difference(before: State, after: State) -> State:
    """Return the writes that turn `before` into `after`."""
    changed = {name: value for name, value in after.items() if name not in before or not are_same(before[name], value)}
    return {**changed, **{name: DROP for name in before if name not in after}}


def _written(output: StepOutput, after: State, before: State, now: State, new: frozenset[str]) -> State:
    """Return the writes that turn `before` into `now`, both of this version, with unchanged fields that it wrote.

    `after` is the state before its upgrade to `now`, of the version that gave the output; `new` are the fields that
    this version's step writes. A field that kept its name and value is written in the form in which it was given.
    """
    changed = difference(before, now)
    names = changed.keys() & now.keys()
    for name in output.writes:
        names |= {name} & now.keys() or {each for each in new - after.keys() if each in now}
    grows = any(isinstance(write, (Append, Splice)) for write in output.writes.values())
    writes: State = {}
    for name in sorted(names):
        kept = name in output.writes and name in after and are_same(after[name], now[name])
        writes[name] = output.writes[name] if kept else _grown(before.get(name), now[name]) if grows else now[name]
    return writes | dict.fromkeys(changed.keys() - now.keys(), DROP)


def _grown(before: Any, now: Any) -> Any:
    """Return an Append for a list that only became longer, since it may land on another list; else `now`."""
    if isinstance(before, list) and isinstance(now, list) and are_same(now[: len(before)], before):
        return Append(now[len(before) :])
    return now


def _given(row: Effect) -> int:
    """Return the id of the plan under which the result was given."""
    return outputs.unpacked(row.returned).plan or _plan_at(row.base)


@lru_cache(4096)
def _plan_at(checkpoint: UUID) -> int:
    """Return the id of the plan under which a checkpoint was saved; it never changes, so a process reads it once."""
    return int(Checkpoint.objects.values_list("plan_id", flat=True).get(pk=checkpoint))


def _writes_of(step: str, plan: Plan) -> frozenset[str]:
    return frozenset(name for each in spec_of(plan).steps if each.name == step for name in each.writes)


def _brought(state: Mapping[str, Any], since: int, to: Plan) -> State:
    if since == to.pk:
        return dict(state)
    return upcast.apply(_way(Plan.objects.get(pk=since), to), state)


def _way(since: Plan, to: Plan) -> UpcastPath:
    way = upcast.way_to(to.version, since, registry.agents()) if since.agent == to.agent else None
    if way is None:
        raise UpcastFailed(f"Its result is one of version {since.version}, and no upcaster leads to {to.version}")
    return way
