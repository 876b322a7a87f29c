"""A payroll whose versions start a child for each salary; what the bank was told is in a file, a line each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel

from agents import Agent, Card, effect, gate


def tell_bank(ledger: str, words: str) -> None:
    """Have the bank do something."""
    with Path(ledger).open("a") as file:
        file.write(f"{words}\n")


class Salary(Agent):
    """Pays one salary once somebody agrees, and takes it back."""

    name = "salary"
    team = "Support"

    class State(BaseModel):
        ledger: str
        iban: str
        memo: str = ""
        paid: bool = False

    @gate(allows=["pay"])
    def ask(self, iban: str) -> Card:
        return Card(title=f"Pay {iban}?", question=None, actions=[], summary="A salary.")

    @effect(undo="take_back")
    def pay(self, ledger: str, iban: str) -> dict[str, Any]:
        tell_bank(ledger, f"pay {iban}")
        return {"paid": True}

    def take_back(self, ledger: str, iban: str) -> None:
        tell_bank(ledger, f"take back {iban}")
