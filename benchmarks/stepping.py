"""The agent whose steps do nothing but go on."""

from __future__ import annotations

import time
from typing import Any

from pydantic import BaseModel

from agents import Agent, Done, Jump, step

STARTED: list[int] = []  # ns, of each step's first line in this process


class Stepping(Agent):
    """Counts."""

    name = "stepping"

    class State(BaseModel):
        steps: int = 1
        count: int = 0

    @step
    def go(self, steps: int, count: int) -> Any:
        """Go round until it has counted far enough."""
        STARTED.append(time.perf_counter_ns())
        if count >= steps:
            return Done()
        return Jump("go", {"count": count + 1})
