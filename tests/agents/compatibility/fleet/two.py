"""Version 2 of both: a van asks by another title and weighs, the fleet keeps a report."""

from __future__ import annotations

from typing import Any

from agents import Action, Card, gate, step, upcast

from . import note, one


class Van(one.Van):
    """Load, ask, deliver."""

    version = "2"

    class State(one.Van.State):
        kilos: int = 1

    @upcast("1")
    @classmethod
    def from_1(cls, state: dict[str, Any]) -> dict[str, Any]:
        return {**state, "kilos": 2}

    @step
    def load(self, ledger: str, stop: str) -> dict[str, Any]:
        note(ledger, f"load {stop} again")
        return {"loaded": stop}

    @gate(allows=["deliver"])
    def review(self, loaded: str, kilos: int) -> Card:  # type: ignore[override]
        action = Action(id="deliver", title="Deliver", pointer="/loaded", effect="deliver")
        return Card(title=f"Deliver {kilos} kg to {loaded}?", actions=[action])


class Fleet(one.Fleet):
    """Send a van to each stop, and wait for all."""

    version = "2"

    class State(one.Fleet.State):
        report: str = ""

    @upcast("1")
    @classmethod
    def from_1(cls, state: dict[str, Any]) -> dict[str, Any]:
        return {**state, "report": ""}

    @step
    def count(self, done: list[str]) -> dict[str, Any]:
        return {"total": len(done), "report": ", ".join(done)}
