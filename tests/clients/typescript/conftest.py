"""The built package, and the programs that use it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.typescript import node
from tests.clients.typescript.program import Program, starter
from tests.conftest import Starter


@pytest.fixture(scope="session")
def package() -> Path:
    """Return the entry of the built package."""
    return node.build()


@pytest.fixture
def program(package: Path, start_service: Starter) -> Program:
    """Return program(world, code, **settings) -> Running: a program under Node with a client `hp`."""
    return starter(package, start_service)
