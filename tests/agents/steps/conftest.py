"""The agents of these tests, registered in this process and in the workers it starts, and what really ran."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.known_agents import fixtures_of

AGENTS = "tests.agents.steps.repaired_agents"
own_agents, _ = fixtures_of(AGENTS)


@pytest.fixture(scope="package")
def workers() -> Iterator[Any]:
    """A process that forks workers, for all these tests: one takes seconds to start."""
    from tests.agents.steps.killable_workers import KillableWorkers  # Django is set up only after this file is read

    made = KillableWorkers(AGENTS)
    yield made
    made.close()


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """What really ran, a line an execution."""
    return tmp_path / "ledger"
