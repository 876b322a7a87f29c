"""A program with Pydantic AI, its model and its people."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Starter
from tests.harness.services import Service

Program = Callable[..., Service]


@pytest.fixture
def starts(start_service: Starter) -> Program:
    """Return starts(world, model, agent, how, …): the program of this folder."""
    from tests.clients.framework_programs import program  # once Django is set up

    def start(world: Any, model: Any, *words: object, **env: str) -> Service:
        file = Path(__file__).parent / "programs" / "pydantic_teller.py"
        return program(start_service, world, model, file, *words, **env)

    return start
