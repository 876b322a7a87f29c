"""The agents of these tests, registered in this process and in the workers it starts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

AGENTS = "tests.agents.steps.repaired_agents"


@pytest.fixture(autouse=True)
def own_agents(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Know these agents and no others, here and in processes started from here."""
    from agents.definition import registry  # Django is set up only after this file is read

    settings.HOLDPOINT_AGENTS = [AGENTS]
    monkeypatch.setenv("HOLDPOINT_AGENTS", AGENTS)
    registry.forget()
    yield
    registry.forget()


@pytest.fixture(scope="module")
def workers() -> Iterator[Any]:
    """A process that forks a worker for each run it is told."""
    from .killable_workers import KillableWorkers

    made = KillableWorkers(AGENTS)
    yield made
    made.close()
