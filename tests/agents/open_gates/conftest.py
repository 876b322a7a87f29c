"""The agents of these tests, registered in this process and in the workers it starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.known_agents import fixtures_of, known_to_modules

AGENTS = "tests.agents.open_gates.beside.busy_agents"
own_agents, workers = known_to_modules(AGENTS), fixtures_of(AGENTS, scope="package")[1]


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """What a launch has done, a line each."""
    return tmp_path / "ledger"
