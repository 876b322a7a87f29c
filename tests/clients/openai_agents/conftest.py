"""A program with the OpenAI Agents SDK, its model and its people."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.framework_programs import program
from tests.clients.scripted_model import ScriptedModel
from tests.clients.world import World
from tests.conftest import Starter
from tests.harness.services import Service

Program = Callable[..., Service]


@pytest.fixture
def starts(start_service: Starter) -> Program:
    """Return starts(world, model, agent, how, …): the program of this folder."""

    def start(world: World, model: ScriptedModel, *words: object) -> Service:
        return program(start_service, world, model, Path(__file__).parent / "programs" / "teller.py", *words)

    return start
