"""The agents of these tests, registered in this process and in those that it starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.known_agents import fixtures_of

own_agents, _ = fixtures_of("tests.approvals.schema.redaction.vault_agent")


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    """The file in which what really ran is written down."""
    path = tmp_path / "ledger"
    path.touch()
    return str(path)
