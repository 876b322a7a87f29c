"""The agents of these tests, and nothing else, are registered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _only_these_agents(settings: Any) -> Iterator[None]:
    from agents.definition import registry  # Django is set up only after this file is read

    settings.HOLDPOINT_AGENTS = ["tests.agents.moves.moved_agents", "tests.agents.moves.authored_agents"]
    registry.forget()
    yield
    registry.forget()


@pytest.fixture(autouse=True)
def _no_point_passed_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hits of a crash point count from here, and who listens to them hears of this test alone."""
    from checkpoints import crash_points

    monkeypatch.setattr(crash_points, "_hits", Counter())
    monkeypatch.setattr(crash_points, "_listeners", [])


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    """The external ledger's path."""
    return str(tmp_path / "ledger")


@pytest.fixture
def opening(tmp_path: Path) -> Path:
    """The file that lets the effect of a waiter or asker end."""
    return tmp_path / "opening"
