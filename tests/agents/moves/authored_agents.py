"""Agents whose state people write by a signal, an answer or another run, or whose gates name a policy."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel

from agents import Action, Agent, Card, ChildRun, Done, Jump, effect, gate, step
from tests.agents.moves.moved_agents import Feedback, write_line


class Account(BaseModel):
    """The value of a signal."""

    iban: str


class Payout(Agent):
    """Hears an account, asks whether the sum is right, and asks before it pays, as often as it is told."""

    name = "payout"
    signals = {"account": Account}

    class State(BaseModel):
        iban: str = ""
        sum: int = 1
        more: int = 0
        decision: dict[str, Any] | None = None

    @step
    def hear(self) -> dict[str, Any]:
        return {"iban": self.wait_for_signal("account").iban}

    @gate(edits=["sum"])
    def check(self, sum: int) -> Card:
        return Card(title=f"{sum}?", actions=[Action(id="sum", title="Sum", pointer="/sum")])

    @gate(edits=["sum"])
    def review(self, iban: str, sum: int) -> Card:
        return Card(title=f"Pay {sum}?", actions=[Action(id="sum", title="Sum", pointer="/sum")])

    @step
    def go_on(self, more: int) -> Any:
        return Jump("review", {"more": more - 1}) if more else Done()


class Below(Agent):
    """A child that asks before it ends."""

    name = "below"

    class State(BaseModel):
        sum: int = 1
        asks: bool = False

    @gate(edits=["sum"])
    def review(self, sum: int, asks: bool) -> Card | None:
        return Card(title=f"Pay {sum}?", actions=[Action(id="sum", title="Sum", pointer="/sum")]) if asks else None


class Above(Agent):
    """Has a child work out the sum, and asks about that itself."""

    name = "above"

    class State(BaseModel):
        first: int = 1
        sum: int = 0

    @step
    def ask(self, first: int) -> dict[str, Any]:
        child: ChildRun = self.spawn("below", {"sum": first, "asks": True})
        made = self.gather(child)[0]
        return {"sum": made.state["sum"] if made else 0}

    @gate(edits=["sum"])
    def review(self, sum: int) -> Card:
        return Card(title=f"Pay {sum}?", actions=[Action(id="sum", title="Sum", pointer="/sum")])


def asked() -> Card:
    """A card about one payment."""
    return Card(title="Pay?", actions=[Action(id="pay", title="Pay")])


class Unread(BaseModel):
    """What no step reads."""

    paid: bool = False


class Middle(Agent):
    """Has no gate of its own."""

    name = "middle"
    State: ClassVar[Any] = Unread

    @step
    def start(self) -> None:
        child: ChildRun = self.spawn("branched", {})
        self.gather(child)


class Manager(Agent):
    """Has no gate of its own, nor has what it starts."""

    name = "manager"
    State: ClassVar[Any] = Unread

    @step
    def start(self) -> None:
        child: ChildRun = self.spawn("middle", {})
        self.gather(child)


class Branched(Agent):
    """Asks nobody in particular."""

    name = "branched"
    State: ClassVar[Any] = Unread

    @gate()
    def review(self) -> Card:
        return asked()


class BranchedOn(Agent):
    """The next version, which asks under a policy of its own."""

    name = "branched"
    version = "2"
    State: ClassVar[Any] = Unread

    @gate(policy="payments")
    def review(self) -> Card:
        return asked()


class Letters(Agent):
    """Ask, draft, send."""

    name = "letters"

    class State(BaseModel):
        ledger: str
        topic: str = "tea"
        text: str = ""
        sent: str = ""
        feedback: list[Feedback] = []

    @gate(allows=["send"], on_reject="draft")
    def review(self, topic: str) -> Card:
        return Card(title=f"Write about {topic}?", actions=[Action(id="topic", effect="send", pointer="/topic")])

    @step
    def draft(self, topic: str, feedback: list[Feedback]) -> dict[str, Any]:
        return {"text": " ".join([topic, *(each.text for each in feedback)])}

    @effect(irreversible=True)
    def send(self, ledger: str, text: str, *, key: str) -> dict[str, Any]:
        write_line(ledger, "send", text, key[:8])
        return {"sent": text}
