"""Agents with a queue of their own, and with children."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from agents import Agent, step


class Heavy(Agent):
    name = "heavy"
    queue = "gpu"

    class State(BaseModel):
        done: bool = False

    @step
    def compute(self) -> dict[str, Any]:
        return {"done": True}


class Parent(Agent):
    name = "queued_parent"

    class State(BaseModel):
        done: bool = False

    @step
    def ask(self) -> dict[str, Any]:
        self.gather(self.spawn("heavy", {}))
        return {"done": True}
