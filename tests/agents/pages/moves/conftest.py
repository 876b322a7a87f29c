"""The agents of the tests of rewinds are known, here and to the web server, so that states can be checked."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.agents.moves.conftest import _only_these_agents, ledger

__all__ = ["_only_these_agents", "ledger"]


@pytest.fixture
def web(shared_web: Callable[..., str]) -> str:
    """The base URL of a web server that knows these agents."""
    return shared_web({"HOLDPOINT_AGENTS": "tests.agents.moves.moved_agents"})
