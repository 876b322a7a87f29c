"""Savers for tests: with each backend, of an agent of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from holdpoint.langgraph import HoldpointSaver, HttpBackend

from agents.threads.local import InProcess
from tests.clients.world import World
from tests.factories import MEMBER, make_team, unique

BACKENDS = ("in process", "over HTTP")


@dataclass
class Made:
    """Makes savers of one agent."""

    backend: str
    url: str = ""
    made: list[HoldpointSaver] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.world = World(self.url) if self.url else None
        self.local: dict[str, Any] = {"agent": unique("graph"), "team": make_team(may=MEMBER)}

    @property
    def token(self) -> str:
        """The token of the agent."""
        assert self.world is not None
        return self.world.token

    def __call__(self, **options: Any) -> HoldpointSaver:
        kept = HttpBackend(self.url, self.token) if self.backend == "over HTTP" else InProcess(**self.local)
        self.made.append(HoldpointSaver(kept, **options))
        return self.made[-1]


@contextmanager
def savers(backend: str, url: str = "") -> Iterator[Made]:
    """Give what makes savers of one agent; they are closed at the end."""
    make = Made(backend, url)
    yield make
    for each in make.made:
        each.close()
