"""What the tests of programs elsewhere share."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.harness.services import Talking


@pytest.fixture(autouse=True)
def _no_wait_for_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs here are between two calls when their run is taken over: none would let go of it meanwhile."""
    monkeypatch.setattr("agents.moves.rewind.HALT_SECONDS", 0.0)


@pytest.fixture(scope="module")
def killable() -> Iterator[Talking]:
    """The warm process; see .failures.killable_caller."""
    command = [sys.executable, "-m", "tests.agents.remote.failures.killable_caller"]
    process = Talking(*command, env={"HOLDPOINT_LOG_LEVEL": "ERROR"})
    yield process
    process.close()
