"""A program of the client's, and which of the two clients it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.harness.examples import first_alone

if TYPE_CHECKING:
    from tests.clients.world import World  # needs Django, which is not set up yet


@pytest.fixture
def world(web: str) -> World:
    """An agent's token, and the team that decides about what it asks."""
    from tests.clients.world import World

    return World(web)


@pytest.fixture(params=first_alone(["called", "awaited"]))
def way(request: pytest.FixtureRequest) -> str:
    """Which of the two clients it is."""
    return str(request.param)
