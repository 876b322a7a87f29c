"""Binds a decision to what was seen and to what may run. Pure.

*Seen* is the digest of everything that the gate presents for a decision (`body`). *To run* is the digest of an
`Approved`: the final arguments of each action with its tool, place and target, the gate, run, step and
plan, for every allowed effect the digests of the fields that it reads and that no step between the gate
and the effect writes, and the preconditions that count with what was observed. Before an effect runs, the
runtime reads the same things from the state it is about to use (`recompute`); where the digests differ,
nothing runs and `differences` says why. Steps in between may write the other fields, people may not: where somebody
edited such a field by hand, or one that it is made of (`loose_names`), the approval does not hold either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from checkpoints.runs.plans import PlanSpec, StepSpec
from checkpoints.values import digests, json_pointer, patch

from .action import Action
from .card import Card
from .precondition import Precondition

Row = dict[str, Any]  # of, pointer, kind (added, removed, changed), before, after
Bound = dict[str, dict[str, str]]  # effect -> field -> hex digest
GONE = "gone"  # stands for the digest of a field that is not there


@dataclass(frozen=True, kw_only=True)
class ProposalTarget:
    """The run, plan, step and checkpoint that a proposal is about."""

    run: int
    agent: str
    version: str
    plan: str  # hex digest of the plan
    step: str
    checkpoint: str  # hex digest of the saved state's checkpoint


def body(target: ProposalTarget, card: Card, *, answer: Any = None) -> dict[str, Any]:
    """Return a proposal as a JSON object: everything that the gate presents for a decision."""
    return {**card.to_json(), **asdict(target), "answer": answer}


def seen(proposal_body: Mapping[str, Any]) -> bytes:
    """Return the digest *seen*, which a reviewer's decision carries."""
    return digests.of_value(dict(proposal_body))


def pairs(actions: Sequence[Action], allows: Sequence[str]) -> list[tuple[str, str]]:
    """Return (action id, effect) for every allowed effect: one grant each.

    A refused or answered action gets none. An effect that no action names belongs to the first action that runs, and to
    "" where none runs.
    """
    running = [action for action in actions if action.settled is None]
    named = [(action.id, action.effect) for action in running if action.effect in allows]
    unnamed = [effect for effect in allows if effect not in {action.effect for action in actions}]
    first = running[0].id if running else ""
    return [*named, *((first, effect) for effect in unnamed)]


def bound_names(plan: PlanSpec, *, gate_step: str, effect: str) -> list[str]:
    """List the fields that an effect reads and that nothing writes between the gate and the effect.

    The gate's own feedback counts as written. So do, for an effect that performs several actions one after the other,
    the fields that steps from one to the next write, and the field that names the action, which the grant fixes.
    """
    names = [step.name for step in plan.steps]
    if effect not in names:
        return []
    start = names.index(gate_step) if gate_step in names else -1
    performing = plan.steps[names.index(effect)]
    between = [*plan.steps[start + 1 : names.index(effect)], *(_round(plan, effect) if performing.action else [])]
    written = {name for step in between for name in step.writes} | {performing.action}
    written |= {plan.steps[start].feedback} if start >= 0 else set()
    return sorted(set(performing.reads) - written)


def _round(plan: PlanSpec, effect: str) -> list[StepSpec]:
    """List the steps on a loop from an effect back to itself, the effect included."""
    after = {name for way in plan.successors(effect) for name in plan.reachable(way)}
    return [step for step in plan.steps if step.name in {*after, effect} and effect in plan.reachable(step.name)]


def loose_names(plan: PlanSpec, *, gate_step: str, effect: str) -> set[str]:
    """Return the fields an effect reads that an approval does not fix, and the fields from which later steps make them.

    The agent's steps may write them after the approval; a person who was not asked may not.
    """
    names = {step.name for step in plan.steps}
    if effect not in names or gate_step not in names:
        return set()
    loose = set(plan.step(effect).reads) - set(bound_names(plan, gate_step=gate_step, effect=effect))
    after = {name for way in plan.successors(gate_step) for name in plan.reachable(way)}
    return plan.sources(loose, after)


def bound_fields(plan: PlanSpec, *, gate_step: str, effects: Sequence[str], fields: Mapping[str, bytes]) -> Bound:
    """Return, per effect, the digests of the fields that an approval fixes. `fields`: field -> digest."""
    return {
        effect: {name: _hex(fields, name) for name in bound_names(plan, gate_step=gate_step, effect=effect)}
        for effect in effects
    }


@dataclass(frozen=True, kw_only=True)
class Approved:
    """Exactly what an outcome lets run."""

    run: int
    gate: int
    step: str
    agent: str
    version: str
    plan: str  # hex digest
    resource: str
    actions: tuple[Action, ...]  # with their final arguments
    allows: tuple[str, ...]
    bound: Bound
    preconditions: tuple[Precondition, ...] = ()  # those that count, with what was observed
    answer: Any = None

    @classmethod
    def of(
        cls,
        proposal_body: Mapping[str, Any],
        *,
        gate: int,
        bound: Bound,
        arguments: Mapping[str, Any],
        preconditions: Sequence[str] = (),
    ) -> Approved:
        """Build what a proposal lets run, with the final arguments by action id, and the ids of its preconditions."""
        card = Card.from_json(proposal_body).with_arguments(arguments)
        target = {name: proposal_body[name] for name in ("run", "agent", "version", "plan", "step", "answer")}
        return cls(
            **target,
            gate=gate,
            resource=card.resource,
            actions=tuple(card.actions),
            allows=tuple(card.allows),
            bound=bound,
            preconditions=tuple(each for each in card.preconditions if each.id in preconditions),
        )

    def guarding(self, effect: str) -> list[Precondition]:
        """List the preconditions that are checked before that effect is done."""
        return [each for each in self.preconditions if each.guards(effect)]

    def digest(self) -> bytes:
        """Return the digest *to run*."""
        actions = [
            {
                "id": a.id, "tool": a.tool, "effect": a.effect, "pointer": a.pointer, "arguments": a.arguments,
                **({"settled": asdict(a.settled)} if a.settled else {}),
            }
            for a in self.actions
        ]  # fmt: skip
        # Left out where there are none, so that approvals from before there were preconditions keep their digests. An
        # approval with some gets another digest without them.
        conditions = {"preconditions": [each.to_json() for each in self.preconditions]} if self.preconditions else {}
        names = ("run", "gate", "step", "agent", "version", "plan", "resource", "bound", "answer")
        plain = {name: getattr(self, name) for name in names}
        return digests.of_value({**conditions, **plain, "actions": actions, "allows": list(self.allows)})


def observed(
    approved: Approved,
    *,
    effect: str,
    action: str = "",
    run: int,
    agent: str,
    version: str,
    plan: str,
    state: Mapping[str, Any],
    fields: Mapping[str, bytes],
) -> Approved:
    """Return `approved` with the arguments and bound fields of `effect` as they are now in `state`.

    `fields` holds the digest of each of the state's fields; `plan` is a hex digest; `action` is the one that is about
    to be performed, where the effect performs several, each by itself.
    """
    mine = {id for id, name in pairs(approved.actions, approved.allows) if name == effect and action in ("", id)}
    actions = tuple(_reread(a, state) if a.id in mine else a for a in approved.actions)
    now = {name: _hex(fields, name) for name in approved.bound.get(effect, {})}
    bound = {**approved.bound, effect: now} if effect in approved.bound else approved.bound
    return replace(approved, run=run, agent=agent, version=version, plan=plan, actions=actions, bound=bound)


def recompute(approved: Approved, **world: Any) -> bytes:
    """Compute the digest *to run* over what would run now. Takes what `observed` takes."""
    return observed(approved, **world).digest()


def differences(approved: Approved, *, approved_state: Mapping[str, Any] | None = None, **world: Any) -> list[Row]:
    """List what changed since the approval, as rows; takes what `observed` takes.

    With `approved_state`, the state that was approved, a changed field is shown by its values, else by its digests.
    """
    now = observed(approved, **world)
    rows = [
        _row("target", f"/{name}", before, after)
        for name in ("run", "agent", "version", "plan")
        if (before := getattr(approved, name)) != (after := getattr(now, name))
    ]
    for old, new in zip(approved.actions, now.actions, strict=True):
        rows += rows_between(old.arguments, new.arguments, of=f"action:{old.id}")
    shown = [action.pointer for action in approved.actions if action.pointer]
    effect, state = world["effect"], world["state"]
    for name, digest in approved.bound.get(effect, {}).items():
        place = json_pointer.join("", name)
        if digest == now.bound[effect][name]:
            continue
        if approved_state is None or name not in approved_state or name not in state:
            rows.append(_row("state", place, digest, now.bound[effect][name]))
        else:
            rows += [
                {**row, "pointer": place + row["pointer"]}
                for row in rows_between(approved_state[name], state[name], of="state")
                if not any(json_pointer.covers_place(pointer, place + row["pointer"]) for pointer in shown)
            ]
    return rows


def body_rows(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Row]:
    """List what changed between two versions of a proposal: the arguments of each action, then the answer."""
    old, new = Card.from_json(before), Card.from_json(after)
    rows = []
    for action in new.actions:
        was = old.action(action.id)
        rows += rows_between(was.arguments if was else None, action.arguments, of=f"action:{action.id}")
        rows += _settled_rows(was, action)
    return rows + rows_between(before.get("answer"), after.get("answer"), of="answer")


def _settled_rows(before: Action | None, after: Action) -> list[Row]:
    """Return a row where an action's settled verdict has changed; else nothing."""
    was, now = (each.settled if each else None for each in (before, after))
    if was == now:
        return []
    return [_row(f"verdict:{after.id}", "", asdict(was) if was else None, asdict(now) if now else None)]


def rows_between(before: Any, after: Any, *, of: str) -> list[Row]:
    """List the differences of two values as rows for a table."""
    return [{"of": of, **row} for row in patch.list_changes(before, after)]


def _row(of: str, pointer: str, before: Any, after: Any) -> Row:
    return {"of": of, "pointer": pointer, "kind": "changed", "before": before, "after": after}


def _reread(action: Action, state: Mapping[str, Any]) -> Action:
    if not action.pointer:
        return action
    if not json_pointer.has_value(state, action.pointer):
        return replace(action, pointer="", arguments=None)  # differs even from a null that was approved
    return replace(action, arguments=json_pointer.find_value(state, action.pointer))


def _hex(fields: Mapping[str, bytes], name: str) -> str:
    return bytes(fields[name]).hex() if name in fields else GONE
