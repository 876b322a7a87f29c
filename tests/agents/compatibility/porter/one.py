"""Version 1."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from agents import Action, Agent, Card, effect, gate, step

from . import SENT


class Porter(Agent):
    """Find the order, propose a reply, ask, send it."""

    name = "porter"
    version = "1"

    class State(BaseModel):
        order: str
        found: str = ""
        text: str = ""
        feedback: list[dict[str, Any]] = []
        sent: str = ""

    @step
    def find(self, order: str) -> dict[str, Any]:
        return {"found": f"order {order}"}

    @step
    def propose(self, found: str, feedback: list[dict[str, Any]]) -> dict[str, Any]:
        return {"text": " ".join(["About", found, *(each["text"] for each in feedback)])}

    @gate(allows=["send"], edits=["text"], on_reject="propose")
    def review(self, text: str) -> Card:
        return Card(title="Send the reply?", actions=[Action(id="text", title="Reply", pointer="/text", effect="send")])

    @effect(undo="recall")
    def send(self, text: str) -> dict[str, Any]:
        SENT.append(("1", text))
        return {"sent": text}

    def recall(self, sent: str) -> None:
        SENT.remove(("1", sent))
