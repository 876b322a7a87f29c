"""The agent of these tests, registered in this process and in those that it starts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import override_settings

AGENTS = "tests.approvals.schema.redaction.vault_agent"


@pytest.fixture(autouse=True, scope="module")
def own_agents() -> Iterator[None]:
    """Know this agent and no other."""
    from agents.definition import registry  # Django is set up only after this file is read

    with pytest.MonkeyPatch.context() as patched, override_settings(HOLDPOINT_AGENTS=[AGENTS]):
        patched.setenv("HOLDPOINT_AGENTS", AGENTS)
        registry.forget()
        yield
    registry.forget()


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    """The file in which what really ran is written down."""
    path = tmp_path / "ledger"
    path.touch()
    return str(path)
