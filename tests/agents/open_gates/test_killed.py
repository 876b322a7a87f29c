"""Workers that die around gates beside a run, and decisions in the moment in which the run begins to wait."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agents.gates import opening
from agents.runner import engine
from approvals.models import Gate
from checkpoints.models import Run
from tests.agents.steps.killable_workers import KillableWorkers, go_on
from tests.factories.driven_runs import advance, advance_to_rest, make_run, state, trail
from tests.harness.racing_threads import race

from .launches import decide, done, gate, launch, open_steps

ASKING = (
    "before_gate@pricing",
    "before_save@pricing",
    "after_save@pricing",
    "after_commit@pricing",
    "after_gate@legal",
)
ANSWERED = (
    "before_outcome@legal",
    "before_save@legal",
    "after_save@legal",
    "after_commit@legal",
    "after_outcome@legal",
)


@pytest.mark.parametrize("place", ASKING)
def test_a_worker_that_is_killed_as_it_asks(place: str, ledger: Path, workers: KillableWorkers) -> None:
    run = make_run("launch", topic="tea", ledger=str(ledger))
    workers.kill(run, place)
    run = go_on(run)
    assert open_steps(run) == ["pricing", "legal"]
    assert Gate.objects.filter(run=run).count() == 2
    assert [each for each in trail(run) if each[0] == "asked"] == [("asked", "pricing"), ("asked", "legal")]


@pytest.mark.parametrize("place", ANSWERED)
def test_a_worker_that_is_killed_as_it_takes_up_an_answer(place: str, ledger: Path, workers: KillableWorkers) -> None:
    run = launch(ledger)
    decide(run, "legal")
    workers.kill(run, place)
    run = go_on(run)
    assert (run.status, open_steps(run)) == ("waiting", ["pricing"])
    assert trail(run).count(("answered", "legal")) == 1
    assert done(ledger).count("publish") == 1


@pytest.mark.parametrize("place", ["before_save@legal", "after_save@legal", "after_outcome@legal"])
def test_a_worker_that_is_killed_as_it_is_sent_back(place: str, ledger: Path, workers: KillableWorkers) -> None:
    run = launch(ledger)
    first = gate(run, "pricing")
    decide(run, "legal", "reject", comment="Too short.", then="back", back_to="draft")
    workers.kill(run, place)
    run = go_on(run)
    assert open_steps(run) == ["pricing", "legal"]
    first.refresh_from_db()
    assert first.status == "withdrawn"
    assert state(run)["text"] == "About tea. Too short."


def test_a_decision_in_the_moment_in_which_the_run_begins_to_wait_is_taken_up(
    ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run("launch", topic="tea", ledger=str(ledger))
    waited = opening.wait_for

    def decided_before(session: Any, gates: Any, reason: str = "") -> bool:
        monkeypatch.setattr(opening, "wait_for", waited)
        decide(run, "legal")
        return waited(session, gates, reason)

    monkeypatch.setattr(opening, "wait_for", decided_before)
    run = advance(run)
    assert (run.status, run.next_step) == ("waiting", "offer")
    assert done(ledger) == ["draft", "translate", "publish"]


def test_two_people_and_a_worker_at_once(ledger: Path) -> None:
    for _ in range(5):
        run = launch(ledger)
        Run.objects.filter(pk=run.pk).update(status="queued", wake_at=None)
        race([partial(decide, run, "legal"), partial(decide, run, "pricing"), partial(engine.advance, run.pk)])
        run = advance_to_rest(run) if Run.objects.get(pk=run.pk).status != "completed" else Run.objects.get(pk=run.pk)
        assert run.status == "completed"
        assert sorted(each for each in trail(run) if each[0] == "answered") == [
            ("answered", "legal"),
            ("answered", "pricing"),
        ]
    assert done(ledger).count("charge 10") == 5


def test_both_reject_at_once_and_one_of_them_sends_the_run_back(ledger: Path) -> None:
    run = launch(ledger)
    decide(run, "legal", "reject", comment="Too short.", then="back", back_to="draft")
    decide(run, "pricing", "reject", comment="No.", then="stop")
    run = advance_to_rest(run)
    assert open_steps(run) == ["pricing", "legal"]
    assert state(run)["text"] == "About tea. Too short."
