"""The steps that every graph agent has are in the digests of its plans: with other source its waiting runs stand still.

The bug: a rename of a local variable in one of them gave every graph agent another plan under its old version.
"""

from __future__ import annotations

import hashlib

import pytest

from agents.definition.inferred_writes import source_of
from agents.langgraph import graph_agent


@pytest.mark.parametrize(
    ("step", "digest"),
    [
        ("go", "992e032673b07dc3"), ("prepare", "997143ca06a06421"), ("ask", "59c59fab11e2af77"),
        ("hear", "27a3775b6df5fc5e"),
    ],
)  # fmt: skip
def test_a_graph_agents_steps_have_the_source_that_its_waiting_runs_were_planned_with(step: str, digest: str) -> None:
    source = source_of(getattr(graph_agent, step))
    assert hashlib.sha256(source.encode()).hexdigest().startswith(digest)
