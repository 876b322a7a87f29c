"""States that past versions of the bundled agents saved: each still loads, as it is or through its upcasters.

`corpus/<agent>/<version>/` holds what runs of that version saved, with the step that came next. A version is never
taken out of it; a new one adds its folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.definition import fields, registry, upcast
from checkpoints.runs.plans import PlanSpec

CORPUS = Path(__file__).parent / "corpus"
SAVED = sorted(CORPUS.glob("*/*/*.json"))


@pytest.fixture(autouse=True)
def bundled_agents(settings: Any) -> Iterator[None]:
    """Know what comes with the product, and nothing else."""
    settings.HOLDPOINT_AGENTS = ["agents.examples.refunds"]
    registry.forget()
    yield
    registry.forget()


@pytest.mark.parametrize("path", SAVED, ids=lambda path: str(path.relative_to(CORPUS)))
def test_a_state_of_a_past_version_goes_on(path: Path) -> None:
    agent, version = path.relative_to(CORPUS).parts[:2]
    saved = json.loads(path.read_text())
    known = registry.agents().get((agent, version))
    if known is not None:
        assert fields.normalised(known.agent.State, saved["state"]) == saved["state"]
        assert upcast.missing(known.spec, [saved["next_step"]]) == []
        return
    way = registry.way_of(PlanSpec(agent, version))
    assert way is not None, f"write an upcaster from {agent} {version}"
    assert upcast.apply(way, saved["state"])
    assert way.lacks([saved["next_step"]]) == []


def test_every_version_that_is_bundled_has_left_states() -> None:
    here = {path.relative_to(CORPUS).parts[:2] for path in SAVED}
    assert set(registry.agents()) <= here


def test_the_corpus_knows_a_state_before_and_after_everything_that_a_person_or_the_world_adds() -> None:
    states = [json.loads(path.read_text())["state"] for path in CORPUS.glob("refunds/1/*.json")]
    for name in ("ticket", "order", "proposal", "feedback", "payment", "reply_sent", "decision"):
        assert {bool(state[name]) for state in states} == {True, False}, name
