"""Version 2 in which the effect has another name, by which no row of the ledger is known."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from agents import Action, Agent, Card, effect, gate, step, upcast

from . import SENT


class Porter(Agent):
    """Propose a reply, ask, mail it, file it."""

    name = "porter"
    version = "2.1"

    class State(BaseModel):
        order: str
        found: str = ""
        text: str = ""
        feedback: list[dict[str, Any]] = []
        sent: str = ""

    @step
    def propose(self, order: str) -> dict[str, Any]:
        return {"text": order}

    @gate(allows=["mail"])
    def review(self, text: str) -> Card:
        return Card(title="Mail the reply?", actions=[Action(id="text", title="Reply", pointer="/text", effect="mail")])

    @effect(irreversible=True)
    def mail(self, text: str) -> dict[str, Any]:
        SENT.append(("2", text))
        return {"sent": text}

    @classmethod
    @upcast("1", steps={"send": "mail"})
    def from_1(cls, state: dict[str, Any]) -> dict[str, Any]:
        return state
