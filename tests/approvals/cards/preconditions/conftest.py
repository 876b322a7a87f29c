"""An agent whose gate observes, registered here and in the processes started from here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.harness.known_agents import knowing_only

if TYPE_CHECKING:
    from tests.approvals.cards.preconditions.watched_world import World

AGENTS = "tests.approvals.cards.preconditions.watched_world"


@pytest.fixture
def world(settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[World]:
    """A world of the test's own, and the agent that looks at it."""
    from tests.approvals.cards.preconditions.watched_world import World

    with knowing_only(AGENTS, settings, monkeypatch):
        yield World(tmp_path)
