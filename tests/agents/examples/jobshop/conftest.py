"""The jobshop's world: a board of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def floor(settings: Any, tmp_path: Path) -> Iterator[Path]:
    """This test's own board, and this agent alone."""
    from agents.definition import registry  # Django is set up only after this file is read

    settings.HOLDPOINT_AGENTS = ["agents.examples.jobshop"]
    settings.HOME = tmp_path
    registry.forget()
    yield tmp_path / "shop-floor"
    registry.forget()
