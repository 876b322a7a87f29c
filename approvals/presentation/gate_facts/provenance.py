"""Tells who wrote a card's words: the installed agent, an external program, or the people who registered a tool.

An agent of this server is installed by its operator, so its titles and labels come from trusted code. An external
program sends its own with each request: they are quoted, with the real names and values beside them. A registered tool
is drawn in the words of the people who registered it, whoever uses it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from approvals.cards.action import Action
from approvals.cards.card import Card
from approvals.models import Gate
from approvals.presentation.text import exact_call

from . import unsupported


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """The author of a card's titles, labels and risk."""

    agent: str
    outside: bool  # the agent's program is external: its words are quoted

    @classmethod
    def of(cls, gate: Gate) -> Self:
        """Return the provenance of a gate's words. Needs the gate's run with its plan."""
        plan = gate.run.plan
        return cls(agent=plan.agent, outside=plan.external)

    def quotes(self, action: Action) -> bool:
        """Tell whether an action's title and labels are an external program's own words."""
        return action.in_own_words(external=self.outside)

    def named(self, action: Action) -> str:
        """Return an action's name for Holdpoint's sentences, never an external program's title."""
        return action.tool if self.quotes(action) else action.title

    def amount(self, card: Card) -> str:
        """Return the amount for Holdpoint's sentences: for an external program, the one in its arguments."""
        return exact_call.amount(card) if self.outside else card.amount

    def unsupported(self, card: Card) -> list[str]:
        """List sentences about amounts and names in an external program's titles that no argument supports."""
        return unsupported.found(card) if self.outside else []


HERE = Provenance(agent="", outside=False)
