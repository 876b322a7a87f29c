"""A step's own policies: backoff between attempts, a step that catches the failure, a guard against going round."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.pages.run.row import read_again
from agents.pages.run.story import scene_of
from agents.pages.run.timeline import build
from agents.steps import retry
from checkpoints import store
from checkpoints.models import Checkpoint, Run
from tests.factories import ann
from tests.factories.driven_runs import advance, advance_to_rest, answer, failures, make_run, open_gate, state, trail

from .killable_workers import KillableWorkers, go_on


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """What really ran, a line an execution."""
    return tmp_path / "ledger"


def pause(run: Run) -> float:
    """Seconds from the last failure until the run is due."""
    assert run.wake_at is not None
    return (run.wake_at - failures(run)[-1].at).total_seconds()


def test_a_step_names_its_first_pause_and_the_next_ones_double() -> None:
    run = advance(make_run("slow"))
    assert 28 < pause(run) < 52
    assert 58 < pause(advance(run)) < 102


def test_pauses_are_spread_and_come_to_a_limit_that_a_longer_first_one_lifts() -> None:
    assert len({retry.backoff(3, 10) for _ in range(5)}) == 5
    assert all(30 <= retry.backoff(3, 10) <= 50 for _ in range(100))
    assert all(225 <= retry.backoff(10_000, 10) <= 375 for _ in range(100))
    assert all(450 <= retry.backoff(attempt, 600) <= 750 for attempt in (1, 9))
    assert retry.backoff(7, 0) == 0


def test_when_its_attempts_have_run_out_the_run_goes_on_with_the_step_that_catches() -> None:
    run = advance(make_run("catcher"))
    assert (run.status, run.attempts) == ("queued", 1)
    assert advance(run).status == "completed"
    assert trail(run)[1:] == [("recovery", "clever"), ("step", "simple")]
    assert state(run)["plan"] == "simple, because clever: ValueError: too clever"
    assert [failure.error for failure in failures(run)] == ["ValueError: too clever"] * 2
    assert run.gates.count() == 0


def test_what_a_step_knows_to_be_hopeless_is_caught_at_once() -> None:
    run = advance(make_run("catcher", mode="hopeless"))
    assert (run.status, len(failures(run))) == ("completed", 1)


def test_nothing_is_caught_where_nothing_failed() -> None:
    run = advance(make_run("catcher", mode="fine"))
    assert trail(run)[1:] == [("step", "clever"), ("step", "polish"), ("step", "simple")]


def test_a_step_that_kills_its_workers_is_caught_too(workers: KillableWorkers) -> None:
    run = make_run("catcher", mode="fine")
    for _ in range(2):
        workers.kill(run, "after_step@clever")
        Run.objects.filter(pk=run.pk).update(lease_until="2000-01-01T00:00:00Z")
    go_on(run)
    assert (run.status, trail(run)[1]) == ("completed", ("recovery", "clever"))
    assert "2 workers died in this step" in failures(run)[0].error


@pytest.mark.parametrize("place", ["before_save@clever", "after_save@clever", "after_commit@clever"])
def test_a_worker_killed_in_a_catch_leaves_one_failure_and_one_catch(place: str, workers: KillableWorkers) -> None:
    run = make_run("catcher", mode="hopeless")
    workers.kill(run, place)
    go_on(run)
    assert (run.status, len(failures(run))) == ("completed", 1)
    assert trail(run)[1:] == [("recovery", "clever"), ("step", "simple")]


def test_a_step_that_ran_as_often_as_its_guard_allows_asks_a_person(ledger: Path) -> None:
    run = advance_to_rest(make_run("circler", ledger=str(ledger)))
    assert (run.status, state(run)["times"]) == ("waiting", 3)
    gate = open_gate(run)
    assert (gate.kind, gate.step) == ("recovery", "hop")
    assert gate.standing().card.question["text"].startswith("“Hop” has run 3 times on this path")  # type: ignore[index]


def test_a_person_lets_it_run_as_often_anew(ledger: Path) -> None:
    run = advance_to_rest(make_run("circler", ledger=str(ledger)))
    answer(run, "retry")
    assert advance_to_rest(run).status == "waiting"
    assert state(run)["times"] == 6


def test_a_person_may_have_the_run_go_on_without_it(ledger: Path) -> None:
    run = advance_to_rest(make_run("circler", ledger=str(ledger)))
    answer(run, "skip")
    advance_to_rest(run)
    assert trail(run)[7:9] == [("recovery", "hop"), ("step", "turn")]


def test_a_loop_within_its_guard_asks_nobody(ledger: Path) -> None:
    run = advance_to_rest(make_run("circler", ledger=str(ledger), until=3))
    assert (run.status, state(run)["times"], run.gates.count()) == ("completed", 3, 0)


def test_a_step_whose_catch_leads_back_to_it_is_guarded_too(ledger: Path) -> None:
    run = advance_to_rest(make_run("circler", ledger=str(ledger), mode="catch"))
    assert (run.status, open_gate(run).step, len(failures(run))) == ("waiting", "fall", 2)


def test_an_effect_is_guarded_before_it_is_done_once_more(ledger: Path) -> None:
    run = advance_to_rest(make_run("circler", ledger=str(ledger), mode="act"))
    assert (run.status, open_gate(run).step) == ("waiting", "act")
    assert ledger.read_text() == "act 0\nact 1\n"
    answer(run, "retry")
    advance_to_rest(run)
    assert ledger.read_text() == "act 0\nact 1\nact 2\nact 3\n"


@pytest.mark.parametrize("place", ["before_gate@hop", "after_gate@hop"])
def test_a_worker_killed_when_its_guard_asks_asks_once(place: str, ledger: Path, workers: KillableWorkers) -> None:
    run = make_run("circler", ledger=str(ledger))
    workers.kill(run, place)
    go_on(run)
    assert (run.status, run.gates.count(), state(run)["times"]) == ("waiting", 1, 3)


def test_a_catch_is_told_on_the_timeline_with_the_failure_that_it_caught() -> None:
    run = advance(make_run("catcher", mode="hopeless"))
    reader = ann(run.team)
    row = next(row for row in build(scene_of(read_again(run, reader), reader).story).rows if row.name == "Clever")
    assert (row.mark.word, [remark.text for remark in row.remarks]) == (
        "failed, continued at another step",
        ["the run goes on with “Simple”"],
    )
    assert [failure.error for failure in row.failures] == ["nothing to be done"]


def test_the_checkpoint_of_a_catch_says_who_takes_over() -> None:
    run = advance(make_run("catcher", mode="hopeless"))
    caught = Checkpoint.objects.get(run=run, kind="recovery")
    assert (caught.next_step, caught.input_digest) == ("simple", None)
    assert store.load_checkpoint(caught.id).state["feedback"][0]["by"] == "clever"
