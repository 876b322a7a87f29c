"""Agents of which one run at a time, or two, work in a team, and one without such a limit."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from agents import Agent, Append, step
from checkpoints.models import Run


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


class Pair(Agent):
    """Each step counts the runs of the agent that are at work, itself among them; two at a time."""

    name = "limited_pair"
    at_once = 2

    class State(BaseModel):
        seen: list[int] = []

    @step
    def one(self) -> dict[str, Any]:
        return {"seen": Append([at_work()])}

    @step
    def two(self) -> dict[str, Any]:
        return {"seen": Append([at_work()])}


def at_work() -> int:
    """How many runs of the agent are at work now."""
    return Run.objects.filter(plan__agent="limited_pair", status="running").count()
