"""Ann at a terminal, with an open gate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.clients.terminal.world import Reviewer


@pytest.fixture
def at(web: str, tmp_path: Path) -> Reviewer:
    from tests.clients.terminal.world import Reviewer  # once Django is set up

    return Reviewer(web, tmp_path)
