"""The tests' own agents, registered in this process and in the workers it starts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings

AGENTS = "tests.factories.sample_agents"


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """The external ledger of a test's agents: what really happened, a line each."""
    return tmp_path / "ledger"


@contextmanager
def knowing_only(agents: str, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    from agents.definition import registry  # Django is set up only after this file is read

    settings.HOLDPOINT_AGENTS = [agents]
    monkeypatch.setenv("HOLDPOINT_AGENTS", agents)
    registry.forget()
    yield
    registry.forget()


@contextmanager
def knowing_here(agents: str, settings: Any) -> Iterator[None]:
    """Know the agents of this module and no others, in this process alone: to show its runs a server needs no agent."""
    from agents.definition import registry

    settings.HOLDPOINT_AGENTS = [agents]
    registry.forget()
    yield
    registry.forget()


@pytest.fixture(autouse=True)
def sample_agents(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with knowing_only(AGENTS, settings, monkeypatch):
        yield


def fixtures_of(agents: str, *, scope: Any = "module") -> tuple[Any, Any]:
    """Return two fixtures for a conftest: these agents are known to every test; and workers that may be killed."""

    @pytest.fixture(autouse=True)
    def own_agents(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        with knowing_only(agents, settings, monkeypatch):
            yield

    @pytest.fixture(scope=scope)
    def workers() -> Any:
        from tests.agents.steps.killable_workers import KillableWorkers

        return KillableWorkers(agents)

    return own_agents, workers


def known_to_modules(agents: str) -> Any:
    """Return a fixture for a conftest: these agents are known, but read, and their plans stored, once a module."""

    @pytest.fixture(autouse=True, scope="module")
    def own_agents() -> Iterator[None]:
        with override_settings(), pytest.MonkeyPatch.context() as patch, knowing_only(agents, settings, patch):
            yield

    return own_agents
