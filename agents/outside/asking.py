"""A gate that a program elsewhere opens: its card, checked before the run lets go of anything."""

from __future__ import annotations

from typing import Any

from approvals import holding, pointers
from approvals.cards import Card, completed
from approvals.errors import CardRefused
from checkpoints.errors import ValueRefused

from .. import runner
from ..errors import FieldError, WorkInvalid
from ..slices import Slice
from .handing import Given, Hands
from .turns import Turn, check_next, go_further, rest


def ask(slice: Slice, step: str, card: Card, *, took: float = 0.0, notes: tuple[str, ...] = ()) -> Turn:
    """Open the gate `step` with this card. Raises OutOfTurn, WorkInvalid and Fenced."""
    spec = check_next(slice, step, "gate")
    if not card.actions:
        raise WorkInvalid([FieldError(pointer="/actions", message="a gate asks about one action at least")])
    try:
        whole = completed(card, step=spec, plan=slice.plan, state=slice.snapshot.state)
    except (CardRefused, ValueRefused) as error:
        raise WorkInvalid([FieldError(pointer="", message=str(error))]) from error
    if faults := _arguments(whole):
        raise WorkInvalid(faults)
    slice.hands = Hands(given=Given(spec.name, card, took, notes))
    going = runner.turn(slice)
    return go_further(slice, going) if going else rest(slice)


def _arguments(card: Card) -> list[FieldError]:
    """What is asked for has to hold under its own schema, or nobody could approve it as it is."""
    found: list[FieldError] = []
    for number, action in enumerate(card.actions):
        at = f"/actions/{number}"
        if action.schema and (wrong := holding.unsound(action.schema)):
            found.append(FieldError(pointer=f"{at}/schema", message=wrong))
            continue
        for place, message in holding.faults_of(action.schema, action.arguments) if action.schema else ():
            found.append(FieldError(pointer=pointers.join(f"{at}/arguments") + place, message=message))
    return found


def card_of(data: dict[str, Any]) -> Card:
    """The card that a body describes."""
    return Card.from_json(data)
