"""Runs that the running release began go on after it: each bundled agent is the same, or has another version."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from agents.definition import registry
from checkpoints.runs.plans import PlanSpec
from config.examples import AGENTS

from .released import PLANS


@pytest.fixture(autouse=True)
def bundled_agents(settings: Any) -> Iterator[None]:
    """Know what comes with the product, and nothing else."""
    settings.HOLDPOINT_AGENTS = list(AGENTS)
    registry.forget()
    yield
    registry.forget()


@pytest.mark.parametrize("agent", PLANS)
def test_a_run_that_the_running_release_began_goes_on(agent: str) -> None:
    """The steps of one changed under its version, so that no new worker served it while a run of the old waited."""
    version, digest = PLANS[agent]
    known = registry.agents().get((agent, version))
    if known is None:
        assert registry.way_of(PlanSpec(agent, version)), f"write an upcaster from {agent} {version}"
    else:
        assert known.digest.hex() == digest, f"the plan of {agent} {version} changed: raise its version"
