"""A report that is gathered first and drafted then, with people's words in mind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel

from agents import Action, Agent, Card, StepFailed, effect, gate, step
from tests.agents.moves.moved_agents import write_line


class Feedback(BaseModel):
    """What somebody said, and when, so that no two are the same."""

    text: str
    at: str


class Report(Agent):
    """Gather, check, draft, ask, send."""

    name = "report"

    class State(BaseModel):
        """`missing` is a file without which the check fails."""

        ledger: str
        missing: str = ""
        found: int = 0
        checked: int = 0
        text: str = ""
        sent: str = ""
        feedback: list[Feedback] = []

    @step
    def gather(  # type: ignore[override]  # an agent's own step of a name that `Agent` has
        self, ledger: str
    ) -> dict[str, Any]:
        """Gather."""
        return {"found": len(ledger)}

    @step
    def check(self, found: int, missing: str) -> dict[str, Any]:
        """Check."""
        if missing and not Path(missing).exists():
            raise StepFailed("the file is missing")
        return {"checked": found}

    @step
    def draft(self, checked: int, feedback: list[Feedback]) -> dict[str, Any]:
        """Draft."""
        return {"text": " ".join([str(checked), *(each.text for each in feedback)])}

    @gate(allows=["send"], on_reject="draft")
    def review(self, text: str) -> Card:
        """Ask."""
        return Card(title="Send the report?", actions=[Action(id="text", effect="send", pointer="/text")])

    @effect(irreversible=True)
    def send(self, ledger: str, text: str, *, key: str) -> dict[str, Any]:
        """Send."""
        write_line(ledger, "send", text, key[:8])
        return {"sent": text}
