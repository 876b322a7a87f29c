"""Agents with a queue of their own, and with children."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from agents import Agent, step


class Heavy(Agent):
    """Served by workers of its queue."""

    name = "heavy"
    queue = "gpu"

    class State(BaseModel):
        done: bool = False

    @step
    def compute(self) -> dict[str, Any]:
        return {"done": True}


class Parent(Agent):
    """Starts a run and waits for it."""

    name = "queued_parent"

    class State(BaseModel):
        done: bool = False

    @step
    def ask(self) -> dict[str, Any]:
        self.gather(self.spawn("heavy", {}))
        return {"done": True}
