"""The outside world of the rollout agent: the sandbox, which is the control plane of the servers too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.agents.examples.refunds.conftest import World, sandbox, shared_sandbox, start_sandbox

__all__ = ["sandbox", "shared_sandbox", "start_sandbox"]


@pytest.fixture(autouse=True)
def world(settings: Any, sandbox: World) -> Iterator[World]:
    """The sandbox that the agent releases to."""
    from agents.definition import registry

    settings.HOLDPOINT_AGENTS = ["agents.examples.rollout"]
    settings.SANDBOX_URL = sandbox.url
    registry.forget()
    yield sandbox
    registry.forget()
