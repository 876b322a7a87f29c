"""The agents of these tests, registered in this process and in the workers it starts, and what really ran."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.known_agents import fixtures_of

own_agents, workers = fixtures_of("tests.agents.steps.repaired_agents", scope="package")


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """What really ran, a line an execution."""
    return tmp_path / "ledger"
