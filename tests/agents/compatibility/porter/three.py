"""Version 3, which inherits what brings version 1 to 2 and brings version 2 to itself."""

from __future__ import annotations

from typing import Any

from agents import step, upcast

from . import two


class Porter(two.Porter):
    """Find the order, draft a reply, ask, send it in a language."""

    version = "3"

    class State(two.Porter.State):
        language: str = "en"

    @step
    def find(self, order: str) -> dict[str, Any]:
        return {"found": f"order {order}", "language": "en"}

    @classmethod
    @upcast("2")
    def from_2(cls, state: dict[str, Any]) -> dict[str, Any]:
        state["language"] = "de" if state["reply"].startswith("Sehr") else "en"
        return state
