"""Savers for tests: with each backend, of an agent of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from holdpoint.langgraph import HoldpointSaver, HttpBackend

from agents.threads.local import InProcess
from tests.clients.world import World
from tests.factories import MEMBER, make_team, unique

Made = Callable[..., HoldpointSaver]
BACKENDS = ("in process", "over HTTP")


@contextmanager
def savers(backend: str, url: str = "") -> Iterator[Made]:
    """Give a function that makes savers of one agent; they are closed at the end."""
    made: list[HoldpointSaver] = []
    world = World(url) if url else None
    local = {"agent": unique("graph"), "team": make_team(may=MEMBER)}

    def make(**options: Any) -> HoldpointSaver:
        kept = HttpBackend(url, world.token) if world and backend == "over HTTP" else InProcess(**local)
        made.append(HoldpointSaver(kept, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()
