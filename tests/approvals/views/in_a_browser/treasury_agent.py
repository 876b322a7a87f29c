"""An agent that pays once people agree, and then asks what it may also tell; what it does is a line in a file."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from agents import Action, Agent, Card, effect, gate, step
from tests.factories.sample_agents import write_line


class Treasury(Agent):
    """Pays a bill and offers to announce it; where nobody answers the offer, it writes down what it read."""

    name = "treasury"

    class State(BaseModel):
        """`ledger` is the world outside."""

        ledger: str
        bill: str = "€12.00 to the printer"
        paid: bool = False
        announced: bool = False
        decision: dict[str, Any] | None = None

    @gate(title="Pay the bill", policy="payments", allows=["pay"])
    def ask_to_pay(self, bill: str) -> Card:
        """Ask for the payment."""
        return Card(title="Pay the printer", actions=[Action(id="pay", pointer="/bill", effect="pay")])

    @effect(irreversible=True)
    def pay(self, ledger: str, bill: str, *, key: str) -> dict[str, Any]:
        """Pay it."""
        write_line(ledger, "paid", bill)
        return {"paid": True}

    @gate(title="Announce it", policy="notes", allows=["announce"], on_expire="note_silence")
    def ask_to_announce(self, bill: str) -> Card:
        """Ask whether all may know."""
        return Card(title="Announce the payment", actions=[Action(id="tell", pointer="/bill", effect="announce")])

    @effect(irreversible=True)
    def announce(self, ledger: str, bill: str, *, key: str) -> dict[str, Any]:
        """Announce it."""
        write_line(ledger, "announced", bill)
        return {"announced": True}

    @step
    def note_silence(self, ledger: str, decision: dict[str, Any] | None) -> dict[str, Any]:
        """Write down what became of the question."""
        write_line(ledger, "read", decision["kind"] if decision else "nothing")
        return {"announced": False}
