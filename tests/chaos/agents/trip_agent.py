"""The harness's agents that take long: a trip asks, starts others meanwhile and waits for them, sleeps, hears signals.

What a trip heard goes to the provider with its booking, so that the world outside says which signals counted.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

from pydantic import BaseModel, Field

from agents import Action, Agent, Card, effect, gate, on_restore, step, undo

from ..shared_files import SIGNAL
from .errand_agent import asked

HEARS = 2  # signals, one after the other
PARCELS = 12


class Word(BaseModel):
    """The value of a signal: a word that nobody else sends."""

    word: str


class Budget(BaseModel):
    """What a trip may cost, which people may lower while it goes on."""

    amount: Decimal = Field(gt=0, le=1000, max_digits=7, decimal_places=2)


class Line:
    """Something that a courier holds open, and that no process can hand to another."""

    def __init__(self, item: str) -> None:
        self.item = item


class Courier(Agent):
    """Counts parcels in one long step, on a line that it holds open, and delivers without asking anybody."""

    name = "courier"
    version = "1"
    team = "Support"
    checkpoints = "milestones"

    class State(BaseModel):
        item: str
        near: bool = False
        loaded: bool = False
        parcels: int = 0
        rested: bool = False
        checked: str = ""
        delivered: str = ""

    @classmethod
    def title(cls, state: Any) -> str:
        return f"courier {state.item}"

    @step
    def go_near(self, item: str) -> dict[str, Any]:
        return {"near": True}

    @step
    def load(self, near: bool) -> dict[str, Any]:
        return {"loaded": True}

    @step(holds=["line"])
    def count(self, item: str) -> dict[str, Any]:
        """Count the parcels; a crash goes on from the last one that was kept."""
        self.hold("line", Line(item), {"item": item})
        done = self.checkpointed(default=0)
        for number in range(done + 1, PARCELS + 1):
            self.checkpoint(number, every=3)
        return {"parcels": PARCELS}

    @step
    def rest(self, parcels: int) -> dict[str, Any]:
        self.sleep_until(timedelta(seconds=0.5), "rest")
        return {"rested": True}

    @on_restore("line")
    def call_again(self, described: dict[str, str]) -> Line:
        return Line(described["item"])

    @step(holds=["line"])
    def check(self, item: str, rested: bool) -> dict[str, Any]:
        """Fail where the line is another's."""
        line = self.held("line")
        if line.item != item:
            raise ValueError(f"the line is {line.item}'s, not {item}'s")
        return {"checked": line.item}

    @effect(undo="fetch_back", idempotent=True, guarded=False)
    def deliver(self, item: str, parcels: int, *, key: str) -> dict[str, Any]:
        return {"delivered": asked("deliver", "/orders", {"item": item, "amount": str(parcels)}, key)["id"]}

    @undo(idempotent=True)
    def fetch_back(self, delivered: str) -> None:
        asked("fetch_back", f"/orders/{delivered}/withdraw", {}, "")


class Trip(Agent):
    """Starts two errands, which ask people, and a courier, which does not; then a nap, two signals, and a booking.

    Its own question stays open meanwhile: only the booking waits for the answer.
    """

    name = "trip"
    version = "1"
    team = "Support"
    signals = {SIGNAL: Word}
    children_at_once = 2

    class State(BaseModel):
        """`need`: how many of the three have to complete; `nap`: seconds."""

        items: list[str]
        amounts: list[Decimal]
        need: int = 3
        nap: float = 1.0
        budget: Budget | None = None
        done: list[int] = []
        napped: bool = False
        heard: list[str] = []
        booked: str = ""

    @classmethod
    def title(cls, state: Any) -> str:
        return f"trip {state.items[0]}"

    @step
    def estimate(self, amounts: list[Decimal]) -> dict[str, Any]:
        return {"budget": Budget(amount=min(sum(amounts, Decimal(1)), Decimal(1000)))}

    @gate(policy="default", waits=False, edits=["budget"], on_reject="estimate")
    def agree(self, budget: Budget) -> Card:
        """Ask whether it may cost so much, and go on."""
        return Card(title=f"Spend {budget.amount}", actions=[Action(id="spend", title="Budget", pointer="/budget")])

    @step
    def fan_out(self, items: list[str], amounts: list[Decimal], need: int) -> dict[str, Any]:
        errands = [
            self.spawn("errand", {"item": item, "amount": str(amount)})
            for item, amount in zip(items[1:], amounts, strict=True)
        ]
        found = self.gather(self.spawn("courier", {"item": items[0]}), *errands, need=need)
        return {"done": [each.run for each in found if each is not None and each.status == "completed"]}

    @step
    def take_a_nap(self, done: list[int], nap: float) -> dict[str, Any]:
        self.sleep_until(timedelta(seconds=nap), "nap")
        return {"napped": True}

    @step
    def hear(self, done: list[int]) -> dict[str, Any]:
        return {"heard": [self.wait_for_signal(SIGNAL).word for _ in range(HEARS)]}

    @effect(undo="withdraw", idempotent=True, guarded=False)
    def book(self, items: list[str], heard: list[str], budget: Budget, *, key: str) -> dict[str, Any]:
        body = {"item": items[0], "words": " ".join(heard), "amount": str(budget.amount)}
        return {"booked": asked("book", "/orders", body, key)["id"]}

    @undo(idempotent=True)
    def withdraw(self, booked: str) -> None:
        asked("withdraw", f"/orders/{booked}/withdraw", {}, "")
