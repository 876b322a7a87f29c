"""An agent that asks about one mail to several people."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from agents import Action, Agent, Card, effect, gate


class Mail(BaseModel):
    """Who gets it."""

    to: list[str]


class Mailing(Agent):
    """Asks, and sends."""

    name = "mailing"

    class State(BaseModel):
        """What is asked about."""

        mail: Mail
        sent: list[str] = []

    @gate(title="Review the mail", allows=["send"], edits=["mail"])
    def review(self, mail: Mail) -> Card:
        """Ask about all of it."""
        return Card(title="Send the mail", actions=[Action(id="send", pointer="/mail", effect="send")])

    @effect(irreversible=True)
    def send(self, mail: Mail, *, key: str) -> dict[str, Any]:
        """Send it."""
        return {"sent": mail.to}
