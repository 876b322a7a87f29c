"""Agents to be drilled: one that may be killed anywhere, and one for the ways in which that goes wrong."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from agents import Action, Agent, Card, effect, gate, step

_counted = 0


def lines(path: str) -> list[str]:
    """What is in an external ledger."""
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def write(path: str, line: str) -> None:
    with Path(path).open("a") as ledger:
        ledger.write(f"{line}\n")


class Sound(Agent):
    """Asks, pays and mails; may be killed anywhere."""

    name = "sound"

    class State(BaseModel):
        ledger: str
        amount: int = 3
        receipt: str = ""
        mailed: bool = False

    @gate(allows=["pay", "mail"], edits=["amount"])
    def review(self, amount: int) -> Card:
        return Card(title=f"Pay {amount}", actions=[Action(id="pay", effect="pay", pointer="/amount")])

    @effect(undo="take_back", idempotent=True)
    def pay(self, ledger: str, amount: int, *, key: str) -> dict[str, Any]:
        """Pay once a key."""
        if key not in lines(ledger):
            write(ledger, key)
        return {"receipt": f"receipt for {key[:8]}"}

    def take_back(self) -> None:
        """Take it back."""

    @effect(irreversible=True)
    def mail(self, ledger: str, receipt: str, *, key: str) -> dict[str, Any]:
        """Send a mail, which cannot be told from a second one."""
        write(ledger, f"mail {key}")
        return {"mailed": True}


class Faulty(Agent):
    """Remembers something in the process, throws dice, and does not hand a key on."""

    name = "faulty"

    class State(BaseModel):
        ledger: str
        first: int = 0
        second: int = 0
        third: int = 0
        thrown: float = 0.0
        receipt: int = 0

    @step
    def one(self) -> dict[str, Any]:
        global _counted
        _counted += 1
        return {"first": 1}

    @step
    def two(self, first: int) -> dict[str, Any]:
        """Use what the process remembers."""
        return {"second": first + _counted}

    @step
    def three(self, second: int) -> dict[str, Any]:
        """Follow from what it reads."""
        return {"third": second * 10}

    @step
    def toss(self) -> dict[str, Any]:
        return {"thrown": random.random()}

    @effect(undo="take_back", idempotent=True, guarded=False)
    def pay(self, ledger: str, *, key: str) -> dict[str, Any]:
        """Pay, every time, though it says that its provider takes a key once."""
        write(ledger, key)
        return {"receipt": lines(ledger).count(key)}

    def take_back(self) -> None:
        """Take it back."""
