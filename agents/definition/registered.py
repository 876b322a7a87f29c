"""A registered version of an agent, and the Celery queue of its doorbells."""

from __future__ import annotations

from dataclasses import dataclass

from checkpoints.models import Plan
from checkpoints.runs.plans import PlanSpec

from .agent import Agent


@dataclass(frozen=True)
class RegisteredAgent:
    """One agent version: its class and its plan."""

    agent: type[Agent]
    spec: PlanSpec
    row: Plan | None = None  # where it was stored by this process

    @property
    def queue(self) -> str:
        """Return the Celery queue of its doorbells; "" for an external agent, which no worker serves."""
        return "" if self.row is not None and self.row.external else queue_of(self.spec.agent, self.spec.version)

    @property
    def digest(self) -> bytes:
        """Return the digest that identifies the plan's row."""
        return self.spec.digest


def queue_of(agent: str, version: str) -> str:
    """Return the queue of one agent version: each has its own, so that old and new workers run side by side."""
    return f"agent.{agent}.{version}"
