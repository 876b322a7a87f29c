"""Validates edited states by the agents' own models; registered with approvals, which may not import agents.

It also finds the agent of a plan on this server: its code, or, for an external agent, its state alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from agents.definition import fields, registry
from agents.definition.agent import RunInfo
from agents.definition.plan_builder import OBSERVED, takes_observed
from agents.definition.registered import RegisteredAgent
from agents.remote import plans as outside
from approvals.cards.card import Card
from approvals.decisions import validators
from approvals.decisions.validators import State, StateFault, Validated
from checkpoints.models import Plan


def known_agent(plan_id: int) -> RegisteredAgent | None:
    """Return the agent version of a plan's row; None where it is not deployed here any more."""
    return registry.plans().get(plan_id) or outside.registered(plan_id)


def register() -> None:
    """Register the validators. Called once, when the apps are ready."""
    validators.register(validate, redraw)


def validate(plan: Plan, state: State) -> Validated | None:
    """Return (the state in normal form, without fields that nobody wrote, []), or (the state, its faults).

    None where this process does not know the agent's version.
    """
    known = known_agent(plan.pk)
    if known is None:
        return None
    try:
        whole = fields.normalised(known.agent.State, state)
    except ValidationError as error:
        faults = fields.errors_of(error)
        return state, [StateFault(pointer=each["pointer"], message=each["message"]) for each in faults]
    return {name: whole[name] for name in state if name in whole}, []


def redraw(plan: Plan, step: str, state: State, observed: Mapping[str, Any]) -> Card | None:
    """Redraw the gate's card for an edited state by its own method, with the values `observed` of the first card."""
    known = known_agent(plan.pk)
    if known is None:
        return None
    spec = known.spec.step(step)
    if spec.kind != "gate":
        return None
    values = {name: fields.read(known.agent.State, name, state) for name in spec.reads}
    if takes_observed(known.agent, spec):
        if not observed.keys() >= set(spec.observes):
            return None
        values[OBSERVED] = observed
    draw = getattr(known.agent(RunInfo(0, ""), 1), step, None)
    card: Any = None if draw is None else draw(**values)  # an external agent is not asked
    return card if isinstance(card, Card) else None
