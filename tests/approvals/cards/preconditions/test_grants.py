"""One grant is one execution, also where what it allowed was adopted and the grant itself was never used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.definition import registry
from agents.moves import rewind
from tests.factories import ann, bob
from tests.factories.driven_runs import advance_to_rest, decide, effects, make_run, open_gate


@pytest.fixture(autouse=True)
def sample_agents(settings: Any) -> Iterator[None]:
    settings.HOLDPOINT_AGENTS = ["tests.factories.sample_agents"]
    registry.forget()
    yield
    registry.forget()


def test_a_grant_whose_effect_was_adopted_allows_no_second_one(tmp_path: Path) -> None:
    """After a rewind the effect was adopted, which left the second approval's grant for the next time round."""
    ledger = tmp_path / "ledger"
    run = advance_to_rest(make_run("repeater", ledger=str(ledger)))
    asked_at = run.seq
    decide(run)
    advance_to_rest(run)
    assert len(ledger.read_text().splitlines()) == 1
    rewind.rewind(run, to=asked_at, by=bob(run.team))
    assert open_gate(advance_to_rest(run)).step == "review"
    decide(run, by=ann(run.team))
    advance_to_rest(run)
    assert len(ledger.read_text().splitlines()) == 1
    assert (run.status, open_gate(run).step) == ("waiting", "review")
    assert [row.status for row in effects(run, "act")] == ["done"]
