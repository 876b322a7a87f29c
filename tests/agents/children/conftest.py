"""The agents of these tests, registered in this process and in the workers it starts, and what they do outside."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.known_agents import fixtures_of, known_to_modules

AGENTS = "tests.agents.children.family"
own_agents, workers = known_to_modules(AGENTS), fixtures_of(AGENTS, scope="package")[1]


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """What the children did outside, a line each."""
    return tmp_path / "ledger"
