"""Version 2 as it was first written: a step and a field have other names, and nothing says so."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from agents import Action, Agent, Card, effect, gate, step

from . import SENT


class Porter(Agent):
    """Find the order, draft a reply, ask, send it."""

    name = "porter"
    version = "2"

    class State(BaseModel):
        order: str
        found: str = ""
        reply: str = ""
        feedback: list[dict[str, Any]] = []
        sent: str = ""

    @step
    def find(self, order: str) -> dict[str, Any]:
        return {"found": f"order {order}"}

    @step
    def draft(self, found: str, feedback: list[dict[str, Any]]) -> dict[str, Any]:
        return {"reply": " ".join(["Dear customer, about", found, *(each["text"] for each in feedback)])}

    @gate(allows=["send"], edits=["reply"], on_reject="draft")
    def review(self, reply: str) -> Card:
        return Card(
            title="Send this reply?", actions=[Action(id="reply", title="Reply", pointer="/reply", effect="send")]
        )

    @effect(undo="recall")
    def send(self, reply: str) -> dict[str, Any]:
        SENT.append(("2", reply))
        return {"sent": reply}

    def recall(self, sent: str) -> None:
        SENT.remove(("2", sent))
