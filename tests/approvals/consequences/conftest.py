"""The agents that these tests run, and nothing else, are registered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _only_these_agents(settings: Any) -> Iterator[None]:
    from agents.definition import registry  # Django is set up only after this file is read

    settings.HOLDPOINT_AGENTS = ["tests.agents.moves.moved_agents"]
    registry.forget()
    yield
    registry.forget()


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    return str(tmp_path / "ledger")
