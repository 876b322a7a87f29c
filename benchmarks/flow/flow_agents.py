"""The agents of these benchmarks: one that sleeps, one with children, and one whose step lasts until it is killed."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import BaseModel

from agents import Agent, step
from benchmarks.parts.agents import client

WOKEN, GATHERED, HELD, RESUMED = "flow-woken", "flow-gathered", "flow-held", "flow-resumed"  # lists in Redis
GO_ON = "flow-go-on"


class Sleeper(Agent):
    """Sleeps, and then says when it went on."""

    name = "flow_sleeper"

    class State(BaseModel):
        woke: int = 0

    @step
    def sleep(self, woke: int) -> dict[str, int]:
        self.sleep_until(datetime.now(UTC) + timedelta(days=1))
        client().rpush(WOKEN, f"{self.run.id} {time.time_ns()}")
        return {"woke": woke + 1}


class Child(Agent):
    """Takes one step."""

    name = "flow_child"

    class State(BaseModel):
        number: int = 0
        doubled: int = 0

    @step
    def double(self, number: int) -> dict[str, int]:
        return {"doubled": number * 2}


class Parent(Agent):
    """Starts so many children in one step, and gathers them all."""

    name = "flow_parent"

    class State(BaseModel):
        children: int = 10
        total: int = 0

    @step
    def fan_out(self, children: int) -> dict[str, Any]:
        found = self.gather(*(self.spawn("flow_child", {"number": number}) for number in range(children)))
        return {"total": sum(each.state["doubled"] for each in found if each is not None)}

    @step
    def tell(self, total: int) -> None:
        client().rpush(GATHERED, self.run.id)


class Holder(Agent):
    """Says that it has begun, and goes on only when it is told, or after its worker was killed."""

    name = "flow_holder"

    class State(BaseModel):
        resumed: int = 0

    @step(retry=20)
    def stay(self, resumed: int) -> dict[str, int]:
        if self.attempt == 1:
            client().rpush(HELD, self.run.id)
            while not client().exists(GO_ON):
                time.sleep(0.2)
        client().rpush(RESUMED, f"{self.run.id} {time.monotonic_ns()}")
        return {"resumed": resumed + 1}
