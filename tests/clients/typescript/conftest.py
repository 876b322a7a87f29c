"""The built package, and the programs that use it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.clients.typescript import node
from tests.conftest import Starter

if TYPE_CHECKING:
    from tests.clients.typescript.program import Program


@pytest.fixture(scope="session")
def package() -> Path:
    return node.build()


@pytest.fixture
def program(package: Path, start_service: Starter) -> Program:
    """Return program(world, code, **settings) -> Running: a program under Node with a client `hp`."""
    from tests.clients.typescript.program import starter

    return starter(package, start_service)
