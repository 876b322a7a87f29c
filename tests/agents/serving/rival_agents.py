"""An agent whose name and version are taken."""

from __future__ import annotations

from pydantic import BaseModel

from agents import Agent, step


class Rival(Agent):
    """Says that it is the hopper."""

    name = "hopper"

    class State(BaseModel):
        """Nothing."""

    @step
    def hop(self) -> None:
        """Do nothing."""
