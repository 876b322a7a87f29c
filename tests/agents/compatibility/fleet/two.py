"""Version 2 of both: a van asks by another title and weighs, the fleet keeps a report."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from agents import Action, Agent, Card, effect, gate, step, upcast

from . import note


class Van(Agent):
    """Load, ask, deliver."""

    name = "van"
    version = "2"

    class State(BaseModel):
        ledger: str
        stop: str
        loaded: str = ""
        kilos: int = 1
        delivered: str = ""

    @classmethod
    @upcast("1")
    def from_1(cls, state: dict[str, Any]) -> dict[str, Any]:
        return {**state, "kilos": 2}

    @step
    def load(self, ledger: str, stop: str) -> dict[str, Any]:
        note(ledger, f"load {stop} again")
        return {"loaded": stop}

    @gate(allows=["deliver"])
    def review(self, loaded: str, kilos: int) -> Card:
        action = Action(id="deliver", title="Deliver", pointer="/loaded", effect="deliver")
        return Card(title=f"Deliver {kilos} kg to {loaded}?", actions=[action])

    @effect(irreversible=True)
    def deliver(self, ledger: str, loaded: str) -> dict[str, Any]:
        note(ledger, f"deliver {loaded}")
        return {"delivered": loaded}


class Fleet(Agent):
    """Send a van to each stop, and wait for all."""

    name = "fleet"
    version = "2"

    class State(BaseModel):
        ledger: str
        stops: list[str]
        done: list[str] = []
        total: int = 0
        report: str = ""

    @classmethod
    @upcast("1")
    def from_1(cls, state: dict[str, Any]) -> dict[str, Any]:
        return {**state, "report": ""}

    @step
    def send_out(self, ledger: str, stops: list[str]) -> dict[str, Any]:
        vans = [self.spawn("van", {"ledger": ledger, "stop": stop}) for stop in stops]
        return {"done": [each.state["delivered"] for each in self.gather(*vans) if each]}

    @step
    def count(self, done: list[str]) -> dict[str, Any]:
        return {"total": len(done), "report": ", ".join(done)}
