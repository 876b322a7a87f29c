"""Version 1."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from agents import Action, Agent, Card, effect, gate, step

from . import note


class Van(Agent):
    """Load, ask, deliver."""

    name = "van"
    version = "1"

    class State(BaseModel):
        ledger: str
        stop: str
        loaded: str = ""
        delivered: str = ""

    @step
    def load(self, ledger: str, stop: str) -> dict[str, Any]:
        note(ledger, f"load {stop}")
        return {"loaded": stop}

    @gate(allows=["deliver"])
    def review(self, loaded: str) -> Card:
        action = Action(id="deliver", title="Deliver", pointer="/loaded", effect="deliver")
        return Card(title=f"Deliver to {loaded}?", actions=[action])

    @effect(irreversible=True)
    def deliver(self, ledger: str, loaded: str) -> dict[str, Any]:
        note(ledger, f"deliver {loaded}")
        return {"delivered": loaded}


class Fleet(Agent):
    """Send a van to each stop, and wait for all."""

    name = "fleet"
    version = "1"

    class State(BaseModel):
        ledger: str
        stops: list[str]
        done: list[str] = []
        total: int = 0

    @step
    def send_out(self, ledger: str, stops: list[str]) -> dict[str, Any]:
        vans = [self.spawn("van", {"ledger": ledger, "stop": stop}) for stop in stops]
        return {"done": [each.state["delivered"] for each in self.gather(*vans) if each]}

    @step
    def count(self, done: list[str]) -> dict[str, Any]:
        return {"total": len(done)}
