"""The tests' own agents, registered in this process and in the workers it starts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.known_agents import knowing_only

AGENTS = "tests.approvals.cards.verdicts.several_action_agents"


@pytest.fixture(autouse=True)
def known_agents(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Know these agents and no others."""
    with knowing_only(AGENTS, settings, monkeypatch):
        yield


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """The world outside: a file, and in it a line for everything that was done."""
    path = tmp_path / "ledger"
    path.touch()
    return path
