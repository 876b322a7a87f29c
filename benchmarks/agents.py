"""The agents that the benchmarks run, and the bare task that they are compared with."""

from __future__ import annotations

import time

import redis
from celery import shared_task
from django.conf import settings
from pydantic import BaseModel

from agents import Action, Agent, Card, gate, step


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
        return {"first_line": time.monotonic_ns()}


@shared_task(name="benchmarks.hop", ignore_result=True)
def hop(number: int) -> None:
    """Do nothing: the cost of any Celery task, a message and a worker."""
    redis.Redis.from_url(settings.REDIS_URL).rpush(f"hop-{number}", time.monotonic_ns())
