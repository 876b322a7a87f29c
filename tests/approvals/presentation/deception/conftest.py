"""The attacking agent, known here and to the servers that are started from here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

AGENTS = "tests.approvals.presentation.deception.trickster_agent"


@pytest.fixture(autouse=True)
def tricks(settings: Any) -> Iterator[None]:
    from agents.definition import registry

    settings.HOLDPOINT_AGENTS = [AGENTS]
    registry.forget()
    yield
    registry.forget()


@pytest.fixture
def web(shared_web: Callable[..., str]) -> str:
    """The base URL of a real web server that knows the attacking agent."""
    return shared_web({"HOLDPOINT_AGENTS": AGENTS})
