from __future__ import annotations

from tests.harness.known_agents import fixtures_of, ledger

__all__ = ["ledger"]
own_agents, workers = fixtures_of("tests.agents.steps.repaired_agents")
