"""Agents to be drilled: one that may be killed anywhere, and one for each way in which that goes wrong."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from agents import Action, Agent, Append, Card, Jump, effect, gate, step

_counted = 0


def lines(path: str) -> list[str]:
    """What is in an external ledger."""
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def pay_once(path: str, key: str) -> str:
    """What a provider does that takes a key once: the same key gets the same answer."""
    if key not in lines(path):
        with Path(path).open("a") as ledger:
            ledger.write(f"{key}\n")
    return f"receipt for {key[:8]}"


class Sound(Agent):
    """Loops, asks, pays and mails; may be killed anywhere."""

    name = "sound"

    class State(BaseModel):
        """`ledger` is a file."""

        ledger: str
        rounds: list[int] = []
        seen_at: float = 0.0
        amount: int = 0
        receipt: str = ""
        mailed: bool = False

    @step
    def count(self, rounds: list[int]) -> Any:
        """Go round three times."""
        if len(rounds) < 3:
            return Jump("count", {"rounds": Append([len(rounds)])})
        return {"amount": sum(rounds)}

    @step(reads_world=True)
    def look(self) -> dict[str, Any]:
        """Look at the clock, and say so."""
        return {"seen_at": time.time()}

    @gate(allows=["pay", "mail"], edits=["amount"])
    def review(self, amount: int) -> Card:
        """Ask."""
        return Card(title=f"Pay {amount}", actions=[Action(id="pay", effect="pay", pointer="/amount")])

    @effect(undo="take_back", idempotent=True)
    def pay(self, ledger: str, amount: int, *, key: str) -> dict[str, Any]:
        """Pay once a key."""
        return {"receipt": pay_once(ledger, key)}

    def take_back(self) -> None:
        """Take it back."""

    @effect(irreversible=True)
    def mail(self, ledger: str, receipt: str, *, key: str) -> dict[str, Any]:
        """Send a mail, which cannot be told from a second one."""
        with Path(ledger).open("a") as file:
            file.write(f"mail {key}\n")
        return {"mailed": True}


class Counting(Agent):
    """Remembers something in the process between two steps."""

    name = "counting"

    class State(BaseModel):
        """What was counted."""

        first: int = 0
        second: int = 0
        third: int = 0

    @step
    def one(self) -> dict[str, Any]:
        """Count."""
        global _counted
        _counted += 1
        return {"first": 1}

    @step
    def two(self, first: int) -> dict[str, Any]:
        """Use what the process remembers."""
        return {"second": first + _counted}

    @step
    def three(self, second: int) -> dict[str, Any]:
        """Go on with it."""
        return {"third": second * 10}


class Tossing(Agent):
    """Writes what does not follow from what it reads."""

    name = "tossing"

    class State(BaseModel):
        """A throw."""

        thrown: float = 0.0
        doubled: float = 0.0

    @step
    def toss(self) -> dict[str, Any]:
        """Throw."""
        return {"thrown": random.random()}

    @step
    def double(self, thrown: float) -> dict[str, Any]:
        """Follow from what it reads."""
        return {"doubled": 2 * thrown}


class Forgetful(Agent):
    """Says that its provider takes a key once, and does not hand the key on."""

    name = "forgetful"

    class State(BaseModel):
        """`ledger` is a file."""

        ledger: str
        receipt: int = 0

    @effect(undo="take_back", idempotent=True, guarded=False)
    def pay(self, ledger: str, *, key: str) -> dict[str, Any]:
        """Pay, every time."""
        with Path(ledger).open("a") as file:
            file.write(f"{key}\n")
        return {"receipt": lines(ledger).count(key)}

    def take_back(self) -> None:
        """Take it back."""
