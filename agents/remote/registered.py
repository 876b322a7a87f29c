"""What a program asks under tools that people registered, checked before anything of it is kept."""

from __future__ import annotations

from django.contrib.auth.models import Group

from agents.errors import FieldError, ToolMismatched, ToolNotRegistered
from approvals.cards.card import Card
from approvals.errors import NotRegistered, ToolRefused
from approvals.models import Policy
from approvals.tools import drawing
from checkpoints.runs.plans import PlanSpec


def drawn(card: Card, *, team: Group, policy: str, plan: PlanSpec | None = None) -> Card:
    """Return the card as people registered its tools. Raises ToolNotRegistered, ToolMismatched, and NoSuchPolicy."""
    named = Policy.objects.named(policy, team=team)
    try:
        return drawing.drawn(card, team=team, policy=named, plan=plan)
    except ToolRefused as refused:
        refusal = ToolNotRegistered if isinstance(refused, NotRegistered) else ToolMismatched
        raise refusal(
            [
                FieldError(pointer=f"/actions/{fault.number}{fault.pointer}", message=fault.message)
                for fault in refused.faults
            ]
        ) from refused
