"""The attacking agent is known here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

AGENTS = "tests.approvals.presentation.deception.trickster_agent"


@pytest.fixture(autouse=True)
def tricks(settings: Any) -> Iterator[None]:
    from agents.definition import registry

    settings.HOLDPOINT_AGENTS = [AGENTS]
    registry.forget()
    yield
    registry.forget()
