"""The agents of these tests, registered in this process and in the workers it starts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.harness.known_agents import knowing_only

AGENTS = "tests.agents.children.family"


@pytest.fixture(autouse=True)
def own_agents(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Know these agents and no others, here and in processes started from here."""
    with knowing_only(AGENTS, settings, monkeypatch):
        yield


@pytest.fixture(scope="module")
def workers() -> Iterator[Any]:
    """A process that forks a worker for each run it is told."""
    from tests.agents.steps.killable_workers import KillableWorkers

    made = KillableWorkers(AGENTS)
    yield made
    made.close()
