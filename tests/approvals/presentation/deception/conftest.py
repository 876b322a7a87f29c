"""The attacking agent is known here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.harness.known_agents import knowing_here

AGENTS = "tests.approvals.presentation.deception.trickster_agent"


@pytest.fixture(autouse=True)
def tricks(settings: Any) -> Iterator[None]:
    with knowing_here(AGENTS, settings):
        yield
