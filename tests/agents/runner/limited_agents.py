"""An agent of which one run at a time works in a team, and one without such a limit."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from agents import Agent, step


class Narrow(Agent):
    """Two steps; one run at a time."""

    name = "narrow"
    at_once = 1

    class State(BaseModel):
        first: bool = False
        second: bool = False

    @step
    def one(self) -> dict[str, Any]:
        return {"first": True}

    @step
    def two(self, first: bool) -> dict[str, Any]:
        return {"second": True}


class Broad(Narrow):
    """The same without a limit."""

    name = "broad"
    at_once = 0
