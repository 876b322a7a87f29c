"""Actors: people, agents and the system, each with an id and a name, so that every write names its author."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model


@dataclass(frozen=True, slots=True)
class Actor:
    """`id` is "user:7", "agent:refunds" or "system"; `name` is what people read."""

    id: str
    name: str = ""


def names(ids: Iterable[str]) -> dict[str, str]:
    """Return what people read for each id: a person's name, an agent's; the id itself where there is no such person."""
    wanted = set(ids)
    keys = [int(key) for word in wanted if word.startswith("user:") and (key := word.removeprefix("user:")).isdigit()]
    people = {actor.id: actor.name for actor in map(of_user, get_user_model().objects.in_bulk(keys).values())}
    return {
        word: people.get(word) or (SYSTEM.name if word == SYSTEM.id else word.removeprefix("agent:")) for word in wanted
    }


SYSTEM = Actor("system", "Holdpoint")
OPERATOR = Actor("operator", "somebody at the command line")


def of_user(user: Any) -> Actor:
    """Name a signed-in person as the actor, by full name where there is one."""
    return Actor(f"user:{user.pk}", (user.get_full_name() or user.get_username())[:150])


def of_agent(name: str) -> Actor:
    """Name an agent as the actor, by its registered name."""
    return Actor(f"agent:{name}", name)
