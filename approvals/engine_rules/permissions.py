"""Rules for an effect's permission: the gate that decides about it, and whether what that gave is left and holds.

Also here: rules for gates: allowing effects, approvals that still hold, and where a run goes back to.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence, Set
from datetime import datetime
from typing import Protocol, TypeVar
from uuid import UUID

from checkpoints.runs.plans import PlanSpec, StepSpec
from checkpoints.store.loading import CheckpointHeader
from checkpoints.values import json_pointer
from checkpoints.values.checkpoint_kinds import GATE_PASSED, OUTCOMES, OUTPUT_LANDED, Kind

from . import effects
from .effects import EffectRow, adoptable

MIXED = "mixed"  # decided action by action
DECISION = "decision"  # the field in which an agent may be told what was decided
AGREED = ("approved", "edited", MIXED, "answered")  # kinds of outcomes that let a run go on


def allowing(plan: PlanSpec, effect: str) -> list[str]:
    """List the gates that can allow an effect."""
    return [step.name for step in plan.steps if effect in step.allows]


def told_at(gate: StepSpec) -> list[str]:
    """List the fields that a person's decision at a gate may write."""
    return [*_edited(gate), DECISION, *([gate.feedback] if gate.feedback else [])]


def _edited(gate: StepSpec) -> list[str]:
    return [json_pointer.split_pointer("/" + place.strip("/"))[0] for place in gate.edits]


def holds_up(plan: PlanSpec, gate: StepSpec, next_step: str) -> bool:
    """Tell whether the next step, or the end of the run (""), waits for the decision at a gate that is open beside it.

    Another gate does not wait for what both only add to: the agent's feedback, and what it is told of the decision. It
    does wait if people may change there what the open gate shows.
    """
    if not next_step or next_step == gate.name or next_step in gate.allows:
        return True
    step = plan.step(next_step)
    if step.kind == "gate" and not set(_edited(step)).isdisjoint(gate.reads):
        return True
    changes = _edited(step) if step.kind == "gate" else step.writes
    return not set(told_at(gate)).isdisjoint([*step.reads, *changes])


def asked_last(plan: PlanSpec, effect: str, path: Iterable[CheckpointHeader]) -> str:
    """Return the gate at which people revise an effect: of those that can allow it, the one that asked last."""
    asking = allowing(plan, effect)
    asked = [place.step for place in path if place.kind in GATE_PASSED and place.step in asking]
    return asked[-1] if asked else asking[-1]


def reopened(plan: PlanSpec, effect: str, decided: str) -> str:
    """Return the gate to which the run goes back from an effect that needs its permission.

    `decided`: the step of the gate at which people last decided about the effect; "" for none.
    """
    asking = allowing(plan, effect)
    return decided if decided in asking else asking[-1]


def stands(kind: str, allowed: Iterable[EffectRow | None]) -> bool:
    """Tell whether people approved all that was asked, and every effect that they allowed is done and still wanted.

    `allowed`: the effect that used each grant, None where none did. After any refusal the gate asks again, since the
    run was sent back and may answer the refusal in any way.
    """
    agreed = kind in AGREED and kind != MIXED
    return agreed and all(row is not None and adoptable(row) for row in allowed)


def closed_last(path: Sequence[CheckpointHeader], gate: str) -> tuple[CheckpointHeader | None, list[str]]:
    """Return where a gate last closed, None for nowhere, and the steps that were executed since."""
    at = max((at for at, place in enumerate(path) if place.step == gate and place.kind in GATE_PASSED), default=-1)
    since = [place.step for place in path[at + 1 :] if place.kind in OUTPUT_LANDED]
    return (path[at] if at >= 0 else None), since


def asked_on(path: Iterable[CheckpointHeader]) -> tuple[list[UUID], dict[str, UUID]]:
    """Return the checkpoints at which settled gates were opened, in the order of their outcomes; and those that asked.

    These are the gates from which the run went on and whose outcome is not on the path: step -> checkpoint.
    """
    settled: list[UUID] = []
    asking: dict[str, UUID] = {}
    for place in path:
        if place.parent is None:
            continue
        if place.kind == Kind.ASKED:
            asking[place.step] = place.parent
        elif place.kind == Kind.ANSWERED:
            settled.append(asking.pop(place.step, place.parent))
        elif place.kind in OUTCOMES:
            settled.append(place.parent)
    return settled, asking


def sent_back_to(path: Sequence[CheckpointHeader], gate: str, step: str, *, beside: bool) -> CheckpointHeader | None:
    """Return the execution of `step` to whose start a rejection sends the run back; None where it does not move.

    Where the run went on from the gate, it is the last one before the gate asked: else that would stay asked. A fork
    does not go back to where the run that it came from asked and went on: nobody answers that for the fork.
    """
    asked = max((at for at, place in enumerate(path) if (place.kind, place.step) == (Kind.ASKED, gate)), default=0)
    start = effects.last_start(path[:asked] if beside else path, step)
    if start is None or (start.run_id != path[-1].run_id and asked_on(path[: path.index(start)])[1]):
        return None
    return start


def edit_goes_back(plan: PlanSpec, since: Iterable[str], touched: Set[str]) -> bool:
    """Tell whether an edit at a reopened gate takes back the steps since: one of them read an edited field."""
    known = {step.name: step for step in plan.steps}
    return any(touched & set(known[name].reads) for name in since if name in known)


class ClosedGate(Protocol):
    """A gate and its outcome. `lets_run`: that lets something run; `actions`: the ids of those that it is about.

    `refusing`: its actions that do not run although the run goes on.
    """

    @property
    def step(self) -> str: ...
    @property
    def recovery(self) -> bool: ...
    @property
    def lets_run(self) -> bool: ...
    @property
    def actions(self) -> Container[str]: ...
    @property
    def kind(self) -> str: ...
    @property
    def refusing(self) -> Iterable[CardAction]: ...
    @property
    def opened_at(self) -> datetime: ...
    @property
    def closed_at(self) -> datetime | None: ...


class CardAction(Protocol):
    """An action on a gate's card."""

    @property
    def id(self) -> str: ...
    @property
    def effect(self) -> str: ...
    @property
    def settled(self) -> object | None: ...


class ChangeByPerson(Protocol):
    """Fields of the state that somebody changed by hand."""

    @property
    def fields(self) -> Set[str]: ...


G = TypeVar("G", bound=ClosedGate)
A = TypeVar("A", bound=CardAction)
C = TypeVar("C", bound=ChangeByPerson)


def acting(value: object) -> str:
    """Return the id of the action that an effect performs, by the field of the state that names it; "" for none."""
    return value if isinstance(value, str) else ""


def last_allowing(closed: Iterable[G], plan: PlanSpec, effect: StepSpec, *, now: str | None) -> G | None:
    """Return the first of these gates, newest first, that could allow an effect; None for none.

    A recovery gate counts if it let the effect run; of several actions, the one that it would perform `now`. Of gates
    that were open side by side, one that does not let it run counts, whichever was decided first.
    """
    asking = allowing(plan, effect.name)
    found = [each for each in closed if _could_allow(each, asking, effect, now)]
    last = next(iter(found), None)
    if last is None or not plan.goes_on_asking:
        return last
    beside = [each for each in found if each.closed_at is None or each.closed_at > last.opened_at]
    return next((each for each in beside if _withholds(each, effect, now)), last)


def _withholds(gate: G, effect: StepSpec, now: str | None) -> bool:
    """Tell whether a gate that could allow the effect does not, or may not where the action is not known."""
    if not gate.lets_run:
        return True
    mine = (each for each in gate.refusing if each.effect == effect.name)
    return gate.kind == MIXED and any(not effect.action or now is None or each.id == now for each in mine)


def _could_allow(gate: ClosedGate, asking: Container[str], effect: StepSpec, now: str | None) -> bool:
    if not gate.recovery:
        return gate.step in asking
    return gate.step == effect.name and gate.lets_run and (not effect.action or now in gate.actions)


def action_of(actions: Iterable[A], effect: StepSpec, *, now: str) -> A | None:
    """Return the action that an effect performs; where it performs several, the one that it would perform `now`."""
    mine = (each for each in actions if each.effect == effect.name)
    return next((each for each in mine if not effect.action or each.id == now), None)


def refused_action(kind: str, actions: Iterable[A], effect: StepSpec, *, now: str) -> A | None:
    """Return the effect's action if an outcome refused it, or put an answer in its place, and let the run go on."""
    found = action_of(actions, effect, now=now) if kind == MIXED else None
    return found if found is not None and found.settled is not None else None


def executed_since(after: Iterable[CheckpointHeader], step: str) -> list[CheckpointHeader]:
    """List the executions of a step among what follows a gate on the path."""
    return [place for place in after if place.step == step and place.kind in OUTPUT_LANDED]


def permission_left(*, given: int, unused: int, executed: int) -> bool:
    """Tell whether an outcome's grants let an effect run once more: intents and adopted results each use one up."""
    return bool(unused) and executed < given


def changed_by_hand(changes: Iterable[C], loose: Set[str]) -> dict[str, C]:
    """Map each field that an effect depends on, and its permission did not bind, to what first changed it since."""
    found: dict[str, C] = {}
    for each in changes:
        for name in sorted(each.fields & loose):
            found.setdefault(name, each)
    return found
