from __future__ import annotations

from tests.harness.known_agents import ledger, sample_agents

__all__ = ["ledger", "sample_agents"]
