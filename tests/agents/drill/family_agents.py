"""Agents for the drill that wait: for a time, for a signal, and for runs that they start."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from agents import Agent, Append, Card, Jump, effect, gate, step


class Helper(Agent):
    """A child: it asks for a name that is long, and pays."""

    name = "helper"
    team = "Support"

    class State(BaseModel):
        ledger: str
        name: str
        paid: str = ""

    @gate()
    def ask(self, name: str) -> Card | None:
        return Card(title=f"Pay {name}?", question=None, actions=[], summary=name) if len(name) > 1 else None

    @effect(undo="take_back", guarded=False, idempotent=True)
    def pay(self, ledger: str, name: str) -> dict[str, Any]:
        with Path(ledger).open("a") as file:
            file.write(f"pay {name}\n")
        return {"paid": name}

    def take_back(self, ledger: str, name: str) -> None:
        with Path(ledger).open("a") as file:
            file.write(f"take back {name}\n")


class Patient(Agent):
    """Sleeps, hears a signal, loops, and has others pay."""

    name = "patient"
    team = "Support"
    signals = {"go": int, "never": None}

    class State(BaseModel):
        ledger: str
        names: list[str]
        endless: bool = False
        value: int = 0
        rounds: list[int] = []
        paid: list[str] = []

    @step
    def wait(self, endless: bool) -> dict[str, Any]:
        self.sleep_until(datetime.now(UTC) + timedelta(days=1))
        if endless:
            self.wait_for_signal("never")
        return {"value": self.wait_for_signal("go", timeout=timedelta(days=1))}

    @step
    def count(self, rounds: list[int]) -> Any:
        return {} if rounds else Jump("count", {"rounds": Append([1])})

    @step
    def have_paid(self, ledger: str, names: list[str]) -> dict[str, Any]:
        children = [self.spawn("helper", {"ledger": ledger, "name": name}) for name in names]
        return {"paid": [each.state["paid"] if each else "" for each in self.gather(*children)]}
