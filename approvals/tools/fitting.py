"""Whether an edit fits the tools by which its gate was drawn. Pure: the proposal says what they were."""

from __future__ import annotations

from collections.abc import Collection

from approvals import holding
from approvals.cards import Card
from approvals.errors import Invalid, problem


def refuse_unfit(card: Card, changed: Collection[str]) -> None:
    """Raises Invalid where an edit of these actions does not fit the tools by which the gate drew them."""
    errors = [
        problem(message, action=action.id, pointer=place, at=action.pointer + place)
        for action in card.actions
        if action.registered and action.id in changed
        for place, message in holding.faults_of(action.schema, action.arguments)
    ]
    if errors:
        raise Invalid(errors)
