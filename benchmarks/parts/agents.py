"""The agents that the benchmarks run, and the bare task that they are compared with."""

from __future__ import annotations

import time
from functools import cache

import redis
from celery import shared_task
from django.conf import settings
from pydantic import BaseModel

from agents import Action, Agent, Card, effect, gate, step


class Relay(Agent):
    """Stops at a gate at once; the step after it records when it began."""

    name = "relay"

    class State(BaseModel):
        question: str = "May I go on?"
        first_line: int = 0  # ns on the machine's monotonic clock, which all its processes share

    @gate(policy="default")
    def ask(self, question: str) -> Card:
        """Ask, with the time at which the gate was reached in the summary."""
        action = Action(id="go", title="Go on", tool="relay.go", pointer="/question")
        return Card(title="Go on", summary=str(time.monotonic_ns()), actions=[action])

    @step
    def after(self) -> dict[str, int]:
        """Say when it began, to whoever waits for that: polling would take the processor from what is measured."""
        began = time.monotonic_ns()
        client().rpush(f"first-line-{self.run.id}", began)
        return {"first_line": began}


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


@shared_task(name="benchmarks.hop", ignore_result=True)
def hop(number: int) -> None:
    """Do nothing: the cost of any Celery task, a message and a worker."""
    began = time.monotonic_ns()
    client().rpush(f"hop-{number}", began)


def told(name: str, *, within: float = 60.0) -> bytes | None:
    """Wait for the next word that a worker passes on under this name; None where there is none in time.

    In short waits: the client ends a connection that is silent for long, and what it was about to get is lost.
    """
    end = time.monotonic() + within
    while time.monotonic() < end:
        if (found := client().blpop([name], timeout=1)) is not None:
            return bytes(found[1])  # type: ignore[arg-type]
    return None


@cache
def client() -> redis.Redis:
    """Return the connection of this process on which the times are passed on."""
    return redis.Redis.from_url(settings.REDIS_URL)
