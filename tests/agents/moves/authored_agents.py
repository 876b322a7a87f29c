"""Agents whose state people write in other ways than by an edit: a signal, an answer, or another run."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from agents import Action, Agent, Card, ChildRun, Done, Jump, gate, step


class Account(BaseModel):
    """The value of a signal."""

    iban: str


class Payout(Agent):
    """Hears an account, asks whether the sum is right, and asks before it pays, as often as it is told."""

    name = "payout"
    signals = {"account": Account}

    class State(BaseModel):
        """What is asked about at the end."""

        iban: str = ""
        sum: int = 1
        more: int = 0
        decision: dict[str, Any] | None = None

    @step
    def hear(self) -> dict[str, Any]:
        """Wait for the account."""
        return {"iban": self.wait_for_signal("account").iban}

    @gate(edits=["sum"])
    def check(self, sum: int) -> Card:
        """Let people correct the sum."""
        return Card(title=f"{sum}?", actions=[Action(id="sum", title="Sum", pointer="/sum")])

    @gate(edits=["sum"])
    def review(self, iban: str, sum: int) -> Card:
        """Ask."""
        return Card(title=f"Pay {sum}?", actions=[Action(id="sum", title="Sum", pointer="/sum")])

    @step
    def go_on(self, more: int) -> Any:
        """Ask once more, or end."""
        return Jump("review", {"more": more - 1}) if more else Done()


class Below(Agent):
    """A child that asks before it ends."""

    name = "below"

    class State(BaseModel):
        """Its input is its parent's."""

        sum: int = 1
        asks: bool = False

    @gate(edits=["sum"])
    def review(self, sum: int, asks: bool) -> Card | None:
        """Ask."""
        return Card(title=f"Pay {sum}?", actions=[Action(id="sum", title="Sum", pointer="/sum")]) if asks else None


class Above(Agent):
    """Has a child work out the sum, and asks about that itself."""

    name = "above"

    class State(BaseModel):
        """What its child made."""

        first: int = 1
        sum: int = 0

    @step
    def ask(self, first: int) -> dict[str, Any]:
        """Start the child, and take its sum."""
        child: ChildRun = self.spawn("below", {"sum": first, "asks": True})
        made = self.gather(child)[0]
        return {"sum": made.state["sum"] if made else 0}

    @gate(edits=["sum"])
    def review(self, sum: int) -> Card:
        """Ask."""
        return Card(title=f"Pay {sum}?", actions=[Action(id="sum", title="Sum", pointer="/sum")])
