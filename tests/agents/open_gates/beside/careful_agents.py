"""Agents that act, or fail, beside an open gate: while the world is as it was, after parts of an answer, or caught."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel

from agents import Action, Agent, Card, Precondition, effect, gate, observation, step

from ..launching import Said, written


class Careful(Agent):
    """Sends and bills once both are allowed, and the rate is what it was; an unrelated question is open meanwhile."""

    name = "careful"

    class State(BaseModel):
        ledger: str
        rate: str  # a file
        parcel: str = "tea"
        price: int = 10
        note: str = "n"
        feedback: list[Said] = []

    @observation
    def rate_now(self, rate: str) -> str:
        return Path(rate).read_text()

    @gate(waits=False, allows=["send", "bill"], observes=["rate_now"])
    def release(self, parcel: str, price: int) -> Card:
        still = Precondition(
            id="rate", label="the rate is {value}", observes="rate_now", effects=["bill"], required=True
        )
        return Card(
            title="Send and bill?",
            actions=[
                Action(id="send", title="Send", effect="send", pointer="/parcel"),
                Action(id="bill", title="Bill", effect="bill", pointer="/price"),
            ],
            preconditions=[still],
        )

    @gate(waits=False, edits=["note"])
    def agree(self, note: str) -> Card:
        return Card(title="Agreed?", actions=[Action(id="note", title="Note", pointer="/note")])

    @step
    def prepare(self, ledger: str) -> dict[str, Any]:
        written(ledger, "prepare")
        return {}

    @effect(irreversible=True)
    def send(self, ledger: str, parcel: str, *, key: str) -> dict[str, Any]:
        written(ledger, f"send {parcel}")
        return {}

    @effect(irreversible=True)
    def bill(self, ledger: str, price: int, *, key: str) -> dict[str, Any]:
        written(ledger, f"bill {price}")
        return {}


class Catching(Agent):
    """Its work fails and is caught, by a step that the open question holds where `needs` says so."""

    name = "catching"

    class State(BaseModel):
        ledger: str
        topic: str = ""
        note: str = "n"
        done: str = ""
        feedback: list[Said] = []

    @step
    def begin(self, ledger: str, topic: str) -> dict[str, Any]:
        written(ledger, "begin")
        return {}

    @gate(waits=False, edits=["note"], on_reject="begin")
    def agree(self, note: str) -> Card:
        return Card(title="Agreed?", actions=[Action(id="note", title="Note", pointer="/note")])

    @step(retry=0, catch="by_hand", loop_guard=3)
    def work(self, ledger: str) -> dict[str, Any]:
        written(ledger, "work")
        raise RuntimeError("broken")

    @step
    def close(self, done: str) -> dict[str, Any]:
        return {}

    @step
    def by_hand(self, ledger: str, topic: str) -> dict[str, Any]:
        written(ledger, "by hand")
        return {"done": topic}


class CatchingHeld(Catching):
    """The step that catches reads what the question may change."""

    name = "catching_held"

    @step
    def by_hand(self, ledger: str, note: str) -> dict[str, Any]:
        written(ledger, f"by hand {note}")
        return {"done": note}
