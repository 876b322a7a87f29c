"""The outside world of the rollout agent: the sandbox, which is the control plane of the servers too."""

from __future__ import annotations

from tests.agents.examples.refunds.conftest import sandbox, shared_sandbox, start_sandbox, world_of

__all__ = ["sandbox", "shared_sandbox", "start_sandbox"]
world = world_of("agents.examples.rollout")
