"""Version 1."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from agents import Action, Agent, Append, Card, EffectUnknown, effect, gate, step

from . import SENT


class Shop(Agent):
    """Ask, buy, look at what was bought, ask again."""

    name = "shop"
    version = "1"

    class State(BaseModel):
        """`skip`: nobody is asked before it is bought. `cut`: the first answer of the provider does not arrive."""

        what: str
        skip: bool = False
        cut: bool = False
        receipt: str = ""
        bills: list[str] = []
        seen: str = ""

    @step
    def choose(self, skip: bool) -> dict[str, Any]:
        return {}

    @gate(allows=["buy"])
    def review(self, what: str, skip: bool) -> Card | None:
        return None if skip else Card(title="Buy?", actions=[Action(id="w", pointer="/what", effect="buy")])

    @effect(undo="sell", idempotent=True, retry=2, backoff=0)
    def buy(self, what: str, cut: bool, *, key: str) -> dict[str, Any]:
        SENT.append(f"buy {what}")
        if cut and len(SENT) == 1:
            raise EffectUnknown("the line was cut")
        return {"receipt": "R-1", "bills": Append([what])}

    def sell(self, receipt: str) -> None:
        SENT.append(f"sell {receipt!r}")

    @step
    def look(self, receipt: str) -> dict[str, Any]:
        return {"seen": receipt}

    @gate()
    def final(self, seen: str) -> Card:
        return Card(title="All well?")
