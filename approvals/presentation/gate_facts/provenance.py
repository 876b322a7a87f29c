"""Who wrote the words of what a gate asks: the code that is installed here, a program elsewhere, or people.

An agent of this server is installed by its operator, so its titles and labels come from trusted code. A program
elsewhere sends its own with each request: they are drawn as its words, with the real names and values beside them. A
tool that people registered is drawn by what they wrote, whoever asks under it.
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
    """Whose words a card's titles, labels and risk are."""

    agent: str
    outside: bool  # the agent's program is elsewhere: its words are not ours

    @classmethod
    def of(cls, gate: Gate) -> Self:
        """Return whose words the gate's are. Needs the gate's run with its plan."""
        plan = gate.run.plan
        return cls(agent=plan.agent, outside=plan.external)

    def quotes(self, action: Action) -> bool:
        """Tell whether an action's title and labels are the program's own words."""
        return action.in_own_words(external=self.outside)

    def named(self, action: Action) -> str:
        """Name an action in our own sentences: never by what a program elsewhere says of it."""
        return action.tool if self.quotes(action) else action.title

    def amount(self, card: Card) -> str:
        """Return the amount for our own sentences: for a program elsewhere, the one that its arguments say."""
        return exact_call.amount(card) if self.outside else card.amount

    def unsupported(self, card: Card) -> list[str]:
        """List sentences for the amounts and names in a program's titles that no argument bears out."""
        return unsupported.found(card) if self.outside else []


HERE = Provenance(agent="", outside=False)
