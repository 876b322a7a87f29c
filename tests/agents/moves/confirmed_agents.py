"""Agents whose gates, or the gates of whose runs below, name a policy."""

from __future__ import annotations

from pydantic import BaseModel

from agents import Action, Agent, Card, ChildRun, gate, step


def asked() -> Card:
    """A card about one payment."""
    return Card(title="Pay?", actions=[Action(id="pay", title="Pay")])


class Wired(Agent):
    """Asks under a policy of its own."""

    name = "wired"

    class State(BaseModel):
        """Nothing of interest."""

        paid: bool = False

    @gate(policy="payments")
    def review(self) -> Card:
        """Ask."""
        return asked()


class Middle(Agent):
    """Has no gate of its own."""

    name = "middle"

    class State(BaseModel):
        """Nothing of interest."""

        paid: bool = False

    @step
    def start(self) -> None:
        """Have somebody else ask."""
        child: ChildRun = self.spawn("wired", {})
        self.gather(child)


class Manager(Agent):
    """Has no gate of its own, nor has what it starts."""

    name = "manager"

    class State(BaseModel):
        """Nothing of interest."""

        paid: bool = False

    @step
    def start(self) -> None:
        """Have somebody else have somebody ask."""
        child: ChildRun = self.spawn("middle", {})
        self.gather(child)


class Branched(Agent):
    """Asks nobody in particular."""

    name = "branched"

    class State(BaseModel):
        """Nothing of interest."""

        paid: bool = False

    @gate()
    def review(self) -> Card:
        """Ask."""
        return asked()


class BranchedOn(Agent):
    """The next version, which asks under a policy of its own."""

    name = "branched"
    version = "2"

    class State(BaseModel):
        """Nothing of interest."""

        paid: bool = False

    @gate(policy="payments")
    def review(self) -> Card:
        """Ask."""
        return asked()
