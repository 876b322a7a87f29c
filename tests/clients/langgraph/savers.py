"""Savers for tests, with each backend, of an agent of its own; what they save, and the runs that keep it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from holdpoint.langgraph import HoldpointSaver, HttpBackend
from langgraph.checkpoint.base.id import uuid6

from agents.threads.local import InProcess
from checkpoints.audit import verify_runs
from checkpoints.models import Run
from tests.clients.world import World
from tests.factories import MEMBER, make_team, unique

BACKENDS = ("in process", "over HTTP")


@dataclass
class Made:
    backend: str
    url: str = ""
    made: list[HoldpointSaver] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.world = World(self.url) if self.url else None
        self.local: dict[str, Any] = {"agent": unique("graph"), "team": make_team(may=MEMBER)}

    @property
    def token(self) -> str:
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


def checkpoint(values: dict[str, Any] | None = None, *, id: str = "", version: int = 1) -> Any:
    values = values or {}
    return {
        "v": 4, "ts": "t", "id": id or str(uuid6()), "channel_values": values, "versions_seen": {},
        "channel_versions": dict.fromkeys(values, version), "updated_channels": None,
    }  # fmt: skip


def run_of(thread: str, namespace: str = "") -> Run:
    return Run.objects.get(thread=thread, graph__namespace=namespace)


def verified(thread: str) -> None:
    for run in Run.objects.filter(thread=thread):
        assert verify_runs.verify_run(run) == []
