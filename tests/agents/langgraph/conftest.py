"""The graphs of this room's tests, as agents."""

from __future__ import annotations

from tests.harness.known_agents import fixtures_of

own_agents, workers = fixtures_of("tests.agents.langgraph.graphs")
