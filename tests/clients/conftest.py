"""A program of the client's, which of the two clients it has, and a proxy on its way to the server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.clients.losing_proxy import Fate, Proxy, Start

if TYPE_CHECKING:
    from tests.clients.world import World  # needs Django, which is not set up yet


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client claims a run again, and looks for questions, sooner than in production."""
    for place in ("runs.AGAIN", "awaiting.AGAIN", "runs.SLOWEST"):
        monkeypatch.setattr(f"holdpoint.{place}", 0.1)


@pytest.fixture
def world(web: str, impatient: None) -> World:
    """An agent's token, and the team that decides about what it asks."""
    from tests.clients.world import World

    return World(web)


@pytest.fixture
def proxy(web: str, impatient: None) -> Iterator[Start]:
    """Return proxy(fate, port=0) -> Proxy, on the way to the web server."""
    made: list[Proxy] = []

    def start(fate: Fate, port: int = 0) -> Proxy:
        made.append(Proxy(web, fate, port))
        return made[-1]

    yield start
    for each in made:
        each.close()
