"""The agents that the benchmarks run, and the bare task that they are compared with.

They pass times on through Redis to whoever waits for them: polling would take the processor from what is measured.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from functools import cache

import redis
from celery import shared_task
from django.conf import settings
from pydantic import BaseModel

from agents import Action, Agent, Card, effect, gate, step

WOKEN, HELD, RESUMED, GO_ON = "bench-woken", "bench-held", "bench-resumed", "bench-go-on"


class Relay(Agent):
    """Stops at a gate at once; the step after it records when it began."""

    name = "relay"

    class State(BaseModel):
        question: str = "May I go on?"

    @gate(policy="default")
    def ask(self, question: str) -> Card:
        """Ask, with the time at which the gate was reached in the summary."""
        action = Action(id="go", title="Go on", tool="relay.go", pointer="/question")
        return Card(title="Go on", summary=str(time.monotonic_ns()), actions=[action])

    @step
    def after(self) -> None:
        times_connection().rpush(f"first-line-{self.run.id}", time.monotonic_ns())


class Errand(Agent):
    """Takes two steps, asks, and performs an effect: the shortest run that has all of them."""

    name = "errand"

    class State(BaseModel):
        order: int = 0
        price: int = 0
        paid: str = ""

    @step
    def look(self, order: int) -> dict[str, int]:
        return {"order": order + 1}

    @step
    def propose(self, order: int) -> dict[str, int]:
        return {"price": order * 10}

    @gate(policy="default", allows=["pay"])
    def ask(self, price: int) -> Card:
        action = Action(id="pay", title="Pay", tool="errand.pay", effect="pay", pointer="/price")
        return Card(title="Pay the price", actions=[action])

    @effect(irreversible=True)
    def pay(self, price: int, *, key: str) -> dict[str, str]:
        return {"paid": f"{price} {key[:8]}"}


class Sleeper(Agent):
    """Sleeps, and then passes on when it went on."""

    name = "sleeper"

    class State(BaseModel):
        woke: int = 0

    @step
    def sleep(self, woke: int) -> dict[str, int]:
        self.sleep_until(datetime.now(UTC) + timedelta(days=1))
        times_connection().rpush(WOKEN, f"{self.run.id} {time.time_ns()}")
        return {"woke": woke + 1}


class Holder(Agent):
    """Passes on that it has begun, and goes on only where its worker was killed or a word lets it."""

    name = "holder"

    class State(BaseModel):
        resumed: int = 0

    @step(retry=20)
    def stay(self, resumed: int) -> dict[str, int]:
        if self.attempt == 1:
            times_connection().rpush(HELD, self.run.id)
            while not times_connection().exists(GO_ON):
                time.sleep(0.2)
        times_connection().rpush(RESUMED, f"{self.run.id} {time.monotonic_ns()}")
        return {"resumed": resumed + 1}


@shared_task(name="benchmarks.hop", ignore_result=True)
def run_hop(number: int) -> None:
    """Do nothing: the cost of any Celery task, a message and a worker."""
    times_connection().rpush(f"hop-{number}", time.monotonic_ns())


@cache
def times_connection() -> redis.Redis:
    """Return the connection of this process on which the times are passed on."""
    return redis.Redis.from_url(settings.REDIS_URL)
