"""Registry of the functions that validate an edited state and redraw its card.

A JSON Schema alone is not the truth about a state; the agent's own model is. This app may not import it, so the agents'
app registers functions here when it is ready.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypedDict

from approvals.cards.card import Card
from approvals.errors import Refused
from checkpoints.models import Plan


class StateFault(TypedDict):
    """One fault of a state."""

    pointer: str  # within the state
    message: str


State = dict[str, Any]
Validated = tuple[State, list[StateFault]]
Validate = Callable[[Plan, State], Validated | None]
Redraw = Callable[[Plan, str, State, Mapping[str, Any]], "Card | None"]


class NoValidator(Refused):
    """A plan that no validator of this server knows."""

    message = (
        "This server does not know the agent's version, so it cannot check an edit; install it here or choose again."
    )


_registered: list[tuple[Validate, Redraw | None]] = []


def register(validate: Validate, redraw: Redraw | None = None) -> None:
    """Add a validator.

    `validate(plan, state)` gives what `validated` does, or None where it does not know the plan.
    `redraw(plan, step, state, observed)` gives the gate's card for an edited state, so that its words and its amount
    describe what will run; None where it cannot. `observed`: name -> value observed when the gate was opened.
    """
    _registered.append((validate, redraw))


def validated(plan: Plan, state: Mapping[str, Any]) -> Validated:
    """Return (a valid state in the form in which it will run, []) or (the state as it is, every fault).

    Raises NoValidator.
    """
    for validate, _ in _registered:
        found = validate(plan, dict(state))
        if found is not None:
            return found
    raise NoValidator


def redrawn(plan: Plan, step: str, state: Mapping[str, Any], observed: Mapping[str, Any]) -> Card | None:
    """Return the gate's card for an edited state; None where no registered function can draw it."""
    for _, redraw in _registered:
        card = redraw(plan, step, dict(state), observed) if redraw else None
        if card is not None:
            return card
    return None
