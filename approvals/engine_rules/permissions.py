"""Rules for an effect's permission: the gate that decides about it, and whether what that gave is left and holds."""

from __future__ import annotations

from collections.abc import Container, Iterable, Set
from datetime import datetime
from typing import Protocol, TypeVar

from checkpoints.runs.plans import PlanSpec, StepSpec
from checkpoints.store.header import CheckpointHeader
from checkpoints.values.checkpoint_kinds import OUTPUT_LANDED

from .gates import MIXED, allowing


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
