"""An agent with three gates, each before an effect; what an effect does to the world is a line in a file."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from agents import Action, Agent, Card, Retry, effect, gate, step
from tests.factories.sample_agents import write_line


class Bill(BaseModel):
    """What a customer is asked for."""

    amount: Decimal = Field(gt=0, le=1000)


class Courier(Agent):
    """Sends a letter, bills for it and shreds the copy; a person is asked before each."""

    name = "courier"

    class State(BaseModel):
        """`ledger` is the world outside."""

        ledger: str
        letter: str = ""
        bill: Bill | None = None
        sent: bool = False
        billed: bool = False
        booked: bool = False
        shredded: bool = False

    @step
    def write(self) -> dict[str, Any]:
        """Write the letter and its bill."""
        return {"letter": "Good morning", "bill": Bill(amount=Decimal("12.00"))}

    @gate(title="Review the letter", allows=["send"])
    def review(self, letter: str) -> Card:
        """Ask for the letter."""
        return Card(title="Send the letter", actions=[Action(id="send", pointer="/letter", effect="send")])

    @effect(irreversible=True)
    def send(self, ledger: str, letter: str, *, key: str) -> dict[str, Any]:
        """Send it."""
        write_line(ledger, "sent", letter)
        return {"sent": True}

    @gate(title="Review the bill", allows=["charge"], edits=["bill"])
    def price(self, bill: Bill) -> Card:
        """Ask for the bill."""
        return Card(title=f"Bill {bill.amount}", actions=[Action(id="charge", pointer="/bill", effect="charge")])

    @effect(irreversible=True)
    def charge(self, ledger: str, bill: Bill, *, key: str) -> dict[str, Any]:
        """Bill for it."""
        write_line(ledger, "billed", bill.amount)
        return {"billed": True}

    @step(retry=2)
    def book(self, ledger: str) -> dict[str, Any]:
        """Find the books closed once: only a sweeper rings for a run that waits for its next attempt."""
        if "closed" not in Path(ledger).read_text():
            write_line(ledger, "closed")
            raise Retry("The books are closed.", after=0.1)
        return {"booked": True}

    @gate(title="Review the copy", allows=["shred"])
    def keep(self, letter: str) -> Card:
        """Ask whether the copy may go."""
        return Card(title="Shred the copy", actions=[Action(id="shred", pointer="/letter", effect="shred")])

    @effect(irreversible=True)
    def shred(self, ledger: str, letter: str, *, key: str) -> dict[str, Any]:
        """Shred it."""
        write_line(ledger, "shredded")
        return {"shredded": True}
