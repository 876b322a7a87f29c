"""Who did it. The system is an actor like any other, so that no writer is ever nameless."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Actor:
    """`id` is "user:7", "agent:refunds" or "system"; `name` is what people read."""

    id: str
    name: str = ""


SYSTEM = Actor("system", "Holdpoint")


def of_user(user: Any) -> Actor:
    """A signed-in person, by full name where there is one."""
    return Actor(f"user:{user.pk}", (user.get_full_name() or user.get_username())[:150])


def of_agent(name: str) -> Actor:
    """An agent, by its registered name."""
    return Actor(f"agent:{name}", name)
