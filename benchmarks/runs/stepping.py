"""An agent whose step does nothing but repeat."""

from __future__ import annotations

import time
from typing import Any

from pydantic import BaseModel

from agents import Agent, Done, Jump, step

STARTED: list[int] = []  # ns, of each step's first line in this process


class Stepping(Agent):
    """Counts its steps."""

    name = "stepping"

    class State(BaseModel):
        steps: int = 1
        count: int = 0

    @step
    def go(self, steps: int, count: int) -> Any:
        """Repeat until the count reaches `steps`."""
        STARTED.append(time.perf_counter_ns())
        if count >= steps:
            return Done()
        return Jump("go", {"count": count + 1})
