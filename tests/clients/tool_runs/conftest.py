"""A program with a framework's agent, and its people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conftest import Starter
from tests.harness.examples import first_alone

if TYPE_CHECKING:
    from tests.clients.tool_runs.tellers import Teller


@pytest.fixture(params=first_alone(["openai_agents", "pydantic_ai"]))
def teller(request: pytest.FixtureRequest, web: str, start_service: Starter) -> Teller:
    """The program of either framework: what they share is tried with the first alone, but for long."""
    from tests.clients.tool_runs.tellers import make_teller  # once Django is set up

    return make_teller(request.param, web, start_service)


@pytest.fixture
def openai(web: str, start_service: Starter) -> Teller:
    from tests.clients.tool_runs.tellers import make_teller

    return make_teller("openai_agents", web, start_service)


@pytest.fixture
def pydantic(web: str, start_service: Starter) -> Teller:
    from tests.clients.tool_runs.tellers import make_teller

    return make_teller("pydantic_ai", web, start_service)
