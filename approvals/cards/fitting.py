"""Whether an edit fits the tools by which its gate was drawn. Pure: the proposal says what they were."""

from __future__ import annotations

from collections.abc import Collection

from approvals.errors import Invalid, problem
from approvals.schema import validate

from .card import Card


def refuse_unfit(card: Card, changed: Collection[str]) -> None:
    """Raise Invalid where an edit of these actions does not fit the tools by which the gate drew them."""
    errors = [
        problem(message, action=action.id, pointer=place, at=action.pointer + place)
        for action in card.actions
        if action.registered and action.id in changed
        for place, message in validate.faults_of(action.schema, action.arguments)
    ]
    if errors:
        raise Invalid(errors)
