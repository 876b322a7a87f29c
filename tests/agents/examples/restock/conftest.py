"""The outside world of the restock agent: the sandbox, which is the supplier and the till too."""

from __future__ import annotations

from tests.agents.examples.refunds.conftest import sandbox, shared_sandbox, start_sandbox, world_of

__all__ = ["sandbox", "shared_sandbox", "start_sandbox"]
world = world_of("agents.examples.restock")
