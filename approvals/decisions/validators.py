"""What checks an edited state: registered by whoever has the agents' code.

A JSON Schema alone is not the truth about a state; the agent's own model is. This app may not import it,
so the agents' app registers functions here when it is ready.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from django.utils.translation import gettext_lazy

from approvals.cards.card import Card
from checkpoints.models import Plan


class StateFault(TypedDict):
    """One fault of a state."""

    pointer: str  # within the state
    message: str


State = dict[str, Any]
Check = Callable[[Plan, State], "list[StateFault] | None"]
Normalise = Callable[[Plan, State], State]
Redraw = Callable[[Plan, str, State, Mapping[str, Any]], "Card | None"]


class NoValidator(LookupError):
    """A plan that no validator of this server knows."""

    said = gettext_lazy(
        "This server does not know the agent's version, so it cannot check an edit; install it here or choose again."
    )


@dataclass(frozen=True)
class _Validator:
    check: Check
    normalise: Normalise
    redraw: Redraw | None


_registered: list[_Validator] = []


def register(check: Check, normalise: Normalise, redraw: Redraw | None = None) -> None:
    """Add a validator.

    `check(plan, state)` gives every fault at once, or None where it does not know the plan.
    `normalise(plan, state)` gives a valid state in the form in which it will run.
    `redraw(plan, step, state, observed)` gives the gate's card for an edited state, so that its words and its amount
    speak of what will run; None where it cannot. `observed`: by name, what was observed when the gate was opened.
    """
    _registered.append(_Validator(check, normalise, redraw))


def unregister(check: Check) -> None:
    """Take a validator out again."""
    _registered[:] = [validator for validator in _registered if validator.check is not check]


def validated(plan: Plan, state: Mapping[str, Any]) -> tuple[State, list[StateFault]]:
    """Return (the state in its normal form, []) or (the state as it is, every fault). Raises NoValidator."""
    validator, faults = _find(plan, dict(state))
    return (dict(state), faults) if faults else (validator.normalise(plan, dict(state)), [])


def redrawn(plan: Plan, step: str, state: Mapping[str, Any], observed: Mapping[str, Any]) -> Card | None:
    """Return the gate's card for an edited state, where somebody can draw it; else None."""
    for validator in _registered:
        card = validator.redraw(plan, step, dict(state), observed) if validator.redraw else None
        if card is not None:
            return card
    return None


def _find(plan: Plan, state: State) -> tuple[_Validator, list[StateFault]]:
    for validator in _registered:
        faults = validator.check(plan, state)
        if faults is not None:
            return validator, faults
    raise NoValidator(str(NoValidator.said))
