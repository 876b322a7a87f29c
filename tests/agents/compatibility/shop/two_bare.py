"""Version 2, in which the receipt is a slip and the bills are papers; nothing says so yet, or any more."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from agents import Action, Agent, Append, Card, effect, gate, step

from . import SENT


class Shop(Agent):
    """Ask, buy, look at what was bought, ask again."""

    name = "shop"
    version = "2"

    class State(BaseModel):
        """As of version 1."""

        what: str
        skip: bool = False
        cut: bool = False
        slip: str = ""
        papers: list[str] = []
        seen: str = ""

    @step
    def choose(self, skip: bool) -> dict[str, Any]:
        return {}

    @gate(allows=["buy"])
    def review(self, what: str, skip: bool) -> Card | None:
        return None if skip else Card(title="Buy in 2?", actions=[Action(id="w", pointer="/what", effect="buy")])

    @effect(undo="sell", idempotent=True, retry=2, backoff=0)
    def buy(self, what: str, cut: bool, *, key: str) -> dict[str, Any]:
        SENT.append(f"buy {what} in 2")
        return {"slip": "R-2", "papers": Append([what])}

    def sell(self, slip: str) -> None:
        SENT.append(f"sell {slip!r} in 2")

    @step
    def look(self, slip: str) -> dict[str, Any]:
        return {"seen": slip}

    @gate()
    def final(self, seen: str) -> Card:
        return Card(title="All well in 2?")
