"""An agent that asks two questions at once, and goes on with what neither answer touches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel

from agents import Action, Agent, Card, effect, gate, step


class Said(BaseModel):
    text: str
    by: str = ""
    at: str = ""
    gate: int = 0


class Launch(Agent):
    """Drafts a page; its price and its text are decided side by side while it is translated."""

    name = "launch"

    class State(BaseModel):
        ledger: str = "/dev/null"
        topic: str = ""
        text: str = ""
        price: int = 10
        translation: str = ""
        quote: str = ""
        sent: list[str] = []
        feedback: list[Said] = []

    @step
    def draft(self, ledger: str, topic: str, feedback: list[Said]) -> dict[str, Any]:
        written(ledger, "draft")
        return {"text": " ".join([f"About {topic}.", *(said.text for said in feedback)])}

    @gate(waits=False, edits=["price"], allows=["charge"], on_reject="draft")
    def pricing(self, text: str, price: int) -> Card:
        return Card(title="Is the price right?", actions=[Action(id="price", title="Price", pointer="/price")])

    @gate(waits=False, allows=["publish"], on_reject="draft")
    def legal(self, text: str) -> Card:
        return Card(title="May this be published?", summary=text)

    @step
    def translate(self, ledger: str, text: str) -> dict[str, Any]:
        written(ledger, "translate")
        return {"translation": text.upper()}

    @effect(undo="unpublish", idempotent=True)
    def publish(self, ledger: str, translation: str, key: str) -> dict[str, Any]:
        written(ledger, "publish")
        return {}

    @step
    def offer(self, price: int) -> dict[str, Any]:
        return {"quote": f"{price} EUR"}

    @effect(irreversible=True, idempotent=True)
    def charge(self, ledger: str, price: int, key: str) -> dict[str, Any]:
        written(ledger, f"charge {price}")
        return {"sent": [f"charged {price}"]}

    def unpublish(self, ledger: str) -> None:
        written(ledger, "unpublish")


class Survey(Agent):
    """Asks at its very end, and has nothing more to do."""

    name = "survey"

    class State(BaseModel):
        topic: str = ""
        note: str = ""

    @step
    def begin(self, topic: str) -> dict[str, Any]:
        return {"note": topic}

    @gate(waits=False, edits=["note"])
    def agree(self, note: str) -> Card:
        return Card(title="Agreed?", actions=[Action(id="note", title="Note", pointer="/note")])


def written(ledger: str, word: str) -> None:
    with Path(ledger).open("a") as file:
        file.write(f"{word}\n")
