"""The research agent is known, and no other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.harness.known_agents import knowing_only


@pytest.fixture(autouse=True)
def own_agents(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Know the example and no other agent."""
    with knowing_only("agents.examples.research", settings, monkeypatch):
        yield
