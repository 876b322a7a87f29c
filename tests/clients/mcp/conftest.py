"""What the tests start with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.clients.mcp.gateway_files import Files
    from tests.clients.world import World


@pytest.fixture
def files(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    from tests.clients.mcp.gateway_files import Files, run_here

    run_here(monkeypatch, world)
    (tmp_path / "note.txt").write_text("Buy bread.\n")
    return Files(world, tmp_path)
