"""A letter that is allowed by its topic, and drafted afterwards, with people's words in mind."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from agents import Action, Agent, Card, effect, gate, step

from .moved_agents import Feedback, write_line


class Letters(Agent):
    """Ask, draft, send."""

    name = "letters"

    class State(BaseModel):
        """`text` is made after people were asked."""

        ledger: str
        topic: str = "tea"
        text: str = ""
        sent: str = ""
        feedback: list[Feedback] = []

    @gate(allows=["send"], on_reject="draft")
    def review(self, topic: str) -> Card:
        """Ask."""
        return Card(title=f"Write about {topic}?", actions=[Action(id="topic", effect="send", pointer="/topic")])

    @step
    def draft(self, topic: str, feedback: list[Feedback]) -> dict[str, Any]:
        """Write it."""
        return {"text": " ".join([topic, *(each.text for each in feedback)])}

    @effect(irreversible=True)
    def send(self, ledger: str, text: str, *, key: str) -> dict[str, Any]:
        """Send it."""
        write_line(ledger, "send", text, key[:8])
        return {"sent": text}
