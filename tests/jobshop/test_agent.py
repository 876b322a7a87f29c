"""The jobshop agent from the file to the board, with the person in between: the real runner and store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents import AgentError, registry
from agents.errors import InputRefused
from agents.examples.jobshop import JobShop
from agents.examples.jobshop_state import Source
from agents.start import start_run
from approvals.errors import DecisionRefused
from checkpoints import actors
from checkpoints.models import Run
from tests.agents.driving import advance_to_rest, answer, decide, effects, open_gate, state, trail
from tests.factories import make_team

FLOOR = "shop-floor"
THREE = "3 3\n0 3 1 2 2 2\n0 2 2 1 1 4\n1 4 2 3 0 1\n"


@pytest.fixture(autouse=True)
def agents(settings: Any, tmp_path: Path) -> Iterator[None]:
    settings.HOLDPOINT_AGENTS = ["agents.examples.jobshop"]
    settings.HOME = tmp_path
    registry.forget()
    yield
    registry.forget()


def make_waiting_run(**input: Any) -> Run:
    """A run that waits at its gate."""
    given = {"source": {"name": "three", "text": THREE}, **input}
    return advance_to_rest(start_run("jobshop", given, by=actors.SYSTEM, team=make_team()))


def board(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(file.read_text()) for file in sorted((folder / FLOOR).glob("*.json"))]


def test_a_run_plans_breaks_mends_in_two_ways_and_asks() -> None:
    run = make_waiting_run()
    print(run.reason, trail(run), state(run))
    assert run.status == "waiting"
    gate = open_gate(run)
    assert gate.step == "choose"
