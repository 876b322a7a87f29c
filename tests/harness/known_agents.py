"""The tests' own agents, registered in this process and in the workers it starts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

AGENTS = "tests.factories.sample_agents"


@contextmanager
def knowing_only(agents: str, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Know the agents of this module and no others, here and in processes started from here."""
    from agents.definition import registry  # Django is set up only after this file is read

    settings.HOLDPOINT_AGENTS = [agents]
    monkeypatch.setenv("HOLDPOINT_AGENTS", agents)
    registry.forget()
    yield
    registry.forget()


@pytest.fixture(autouse=True)
def sample_agents(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Know the sample agents and no others, here and in processes started from here."""
    with knowing_only(AGENTS, settings, monkeypatch):
        yield


def fixtures_of(agents: str, *, scope: Any = "module") -> tuple[Any, Any]:
    """Return two fixtures for a conftest: these agents are known to every test; and a process that forks workers.

    `scope`: the tests that share the process, which takes seconds to start.
    """

    @pytest.fixture(autouse=True)
    def own_agents(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        with knowing_only(agents, settings, monkeypatch):
            yield

    @pytest.fixture(scope=scope)
    def workers() -> Iterator[Any]:
        from tests.agents.steps.killable_workers import KillableWorkers

        made = KillableWorkers(agents)
        yield made
        made.close()

    return own_agents, workers
