"""Tells of each part of a gate who says so, in the words that every surface uses.

An agent of this server is installed by its operator, so its titles and labels come from trusted code. An external
program sends its own with each request: they are its words, and so is what it says was there before, or who it quotes.
What would run is in the bytes that a decision binds. A registered tool is drawn in the words of the people who
registered it, whoever uses it. The page, messages, the API and by it the terminal take their marks from here: a surface
that made its own would forget one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from django.utils.functional import cached_property

from approvals.cards.action import Action
from approvals.cards.card import Card
from approvals.cards.drawing import COMMAND
from approvals.english import quote_titles
from approvals.models import Gate
from approvals.presentation.text import exact_call
from checkpoints.values import artifacts

from . import unsupported

PROGRAM, PLAN, TOOL, CALL = "program", "plan", "tool", "call"  # who says so; a call is the arguments that would run
UNREADABLE = "unreadable"  # a part of the arguments that would run, and cannot be read here
MARKS = {
    "title": "Title by {agent}",
    "summary": "{agent}\u2019s words",
    "facts": "The program {agent} says",
    "risk": "says {agent}",
    "reasons": "Reasons given by {agent}",
    "quotes": "Quoted by {agent}",
    "action": "{agent} calls it so",
    "undo": "Can be undone, says {agent}",
    "before": "Compared with what {agent} says was there",
    "unchanged": "that {agent} calls unchanged",
    "command": "What {agent} says of it",
    "files": "Names and types of files are as {agent} sent them",
}
FACTS = ("for_whom", "amount", "cost_of_delay", "resource")


def in_quotes(words: str, *, outside: bool) -> str:
    """Return words for a line of plain text, quoted where an external program supplied them (`outside`)."""
    return quote_titles([words]) if outside and words else words


@dataclass(frozen=True)
class CardPart:
    """One part of a card. `words` mark it as somebody's; "" where it is said in this server's own voice."""

    at: str  # JSON Pointer into the card
    by: str
    words: str = ""


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

    def amount(self, card: Card, *, masked: exact_call.Masked) -> str:
        """Return the amount for Holdpoint's sentences: for an external program, the one in its arguments."""
        return exact_call.amount(card, masked=masked) if self.outside else card.amount

    def unsupported(self, card: Card) -> list[str]:
        """List sentences about amounts and names in an external program's titles that no argument supports."""
        return unsupported.found(card) if self.outside else []

    @cached_property
    def marks(self) -> Mapping[str, str]:
        """Return the mark of each kind of part, by the names of MARKS; "" for what is said in our own voice."""
        return {name: mark.format(agent=self.agent) if self.outside else "" for name, mark in MARKS.items()}

    def sets_risk(self, card: Card) -> bool:
        """Tell whether an external program set a card's risk, as not all of its actions have registered tools."""
        return self.outside and not card.registered_risk

    def risk_mark(self, card: Card) -> str:
        """Say who set a card's risk; "" where the plan of this server did."""
        if risk := card.registered_risk:
            return f"at least {Gate.Risk(risk).label.lower()}, as the tool is registered"
        return self.marks["risk"]

    def reasons_mark(self, card: Card) -> str:
        """Say whose the reasons for a card's risk are; "" for this server's plan."""
        if not self.outside or card.registered_risk:
            return self.marks["reasons"]
        return f"Why {self.agent} calls the risk {Gate.Risk(card.risk).label.lower()}"

    def namesake(self, name: str) -> str:
        """Mark a quote whose author is called as a person of this installation; "" for no `name`."""
        if not name:
            return ""
        if self.outside:
            return f"{name} has an account here. These words came from {self.agent}, not from that account."
        return f"{name} has an account here. These words are quoted from the saved state."

    def in_a_line(self, words: str, *, named: bool = True) -> str:
        """Return a title for a line of plain text, its mark first: a long title cannot push it out of sight.

        `named`: whether the line may name the program.
        """
        if not self.outside or not words:
            return words
        says = self.marks["facts"] if named else "An external program says"
        return f"{says}: {in_quotes(words, outside=True)}"

    def parts(self, card: Card, namesakes: Mapping[int, str]) -> Iterator[CardPart]:
        """Yield each part of a card that words are in. `namesakes`: number of a quote -> whose name it bears here."""
        author = PROGRAM if self.outside else PLAN
        yield CardPart("/title", author, self.marks["title"])
        if card.summary:
            yield CardPart("/summary", author, self.marks["summary"])
        yield from (CardPart(f"/{name}", author, self.marks["facts"]) for name in FACTS if getattr(card, name))
        yield CardPart("/risk", TOOL if card.registered_risk else author, self.risk_mark(card))
        if card.reasons:
            yield CardPart("/reasons", author, self.reasons_mark(card))
        for at in range(len(card.quotes)):
            marks = (self.marks["quotes"], self.namesake(namesakes.get(at, "")))
            yield CardPart(f"/quotes/{at}", author, ". ".join(filter(None, marks)))
        for at, action in enumerate(card.actions):
            yield from self._of_action(f"/actions/{at}", action, author)
            for part in card.unreadable.get(action.id, ()):
                yield CardPart(f"/actions/{at}/arguments{part.at}", UNREADABLE, f"Cannot be read here: {part.why}")

    def _of_action(self, place: str, action: Action, author: str) -> Iterator[CardPart]:
        theirs = self.quotes(action)
        yield CardPart(f"{place}/title", TOOL if action.registered else author, self.marks["action"] if theirs else "")
        if action.undo and theirs:
            yield CardPart(f"{place}/undo", author, self.marks["undo"])
        yield CardPart(f"{place}/arguments", CALL)
        for pointer, _file in artifacts.references(action.masked):
            yield CardPart(f"{place}/arguments{pointer}", author, self.marks["files"])
        for at, drawing in enumerate(action.draws):
            mark = "command" if drawing.kind == COMMAND else "before"
            yield CardPart(f"{place}/draws/{at}", author, self.marks[mark])


HERE = Provenance(agent="", outside=False)
