from __future__ import annotations

from tests.harness.empty_redis import server
from tests.harness.known_agents import sample_agents

__all__ = ["sample_agents", "server"]
