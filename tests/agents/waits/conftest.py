"""The agents of these tests, registered in this process and in the workers it starts."""

from __future__ import annotations

from tests.harness.empty_redis import server
from tests.harness.known_agents import fixtures_of

__all__ = ["server"]

own_agents, workers = fixtures_of("tests.agents.waits.waiting_agents", scope="package")
