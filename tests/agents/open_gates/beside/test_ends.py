"""The end of a run, however it comes, withdraws the gates that are open beside it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from agents.models import Effect, StepCheckpoint
from agents.moves import cancel, rewind
from agents.runner import engine
from agents.session import gates_beside
from checkpoints import actors
from checkpoints.models import Event, Run
from tests.factories import ann
from tests.factories.driven_runs import advance, advance_to_rest, make_run, trail
from tests.harness.racing_threads import meet_lock

from ..launches import decide, gate, open_steps

WITHDRAWN = ("withdrawn", "The run has ended.")


def ended_as(run: Run) -> tuple[str, str]:
    """How the gate that was open beside the run ended."""
    asked = gate(run, "agree")
    return asked.status, asked.outcome.words


def test_the_gate_of_a_run_whose_data_does_not_verify_is_withdrawn(ledger: Path) -> None:
    run = advance(make_run("busy", ledger=str(ledger), does="sleep"))
    StepCheckpoint.objects.filter(run=run).update(value=b"[]")
    run.wake(actors.SYSTEM)
    run = advance(run)
    assert (run.frozen, open_steps(run), ended_as(run)) == (True, [], WITHDRAWN)


def test_the_gate_of_a_run_in_which_the_runner_fails_is_withdrawn(
    ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = advance(make_run("busy", ledger=str(ledger), does="sleep"))
    run.wake(actors.SYSTEM)
    Run.objects.filter(pk=run.pk).update(attempts=engine.HOPELESS)

    def broken(*said: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(engine, "go_on", broken)
    run = advance(run)
    assert (run.status, open_steps(run), ended_as(run)) == ("failed", [], WITHDRAWN)


def test_the_gate_of_a_run_that_a_person_stops_at_another_question_is_withdrawn(ledger: Path) -> None:
    run = advance_to_rest(make_run("busy", ledger=str(ledger), does="fail"))
    assert open_steps(run) == ["agree", "work"]
    decide(run, "work", "answer", answer={"choice": "stop", "value": None})
    run = advance(run)
    assert (run.status, open_steps(run), ended_as(run)) == ("failed", [], WITHDRAWN)
    assert Event.objects.filter(run_id=run.pk, kind="gate.withdrawn").count() == 1


def doubtful(ledger: Path, topic: str = "water") -> Run:
    """A run that left an effect behind of which nobody knows whether it happened, with its gate open."""
    run = advance_to_rest(make_run("doubtful", ledger=str(ledger), topic="tea"))
    assert open_steps(run) == ["agree", "book"]
    at = run.checkpoints.get(kind="asked").seq
    rewind.edit(run, at=at, patch=[{"op": "replace", "path": "/topic", "value": topic}], by=ann(run.team))
    return run


def test_a_question_about_what_was_left_behind_leaves_the_gate_beside_it_open(ledger: Path) -> None:
    run = advance_to_rest(doubtful(ledger, "milk"))
    assert (open_steps(run), gate(run, "book").title) == (["agree", "book"], "Did “Book” happen?")
    decide(run, "book", "answer", answer={"choice": "was_not_done", "value": None})
    run = advance_to_rest(run)
    assert (run.status, run.next_step, open_steps(run)) == ("waiting", "", ["agree"])
    decide(run, "agree")
    assert advance_to_rest(run).status == "completed"


def test_that_question_and_a_person_who_cancels_its_run_do_not_wait_for_each_other(
    ledger: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The run was locked before its gates: the person, who has those, waited for the run, and the worker for them."""
    run = doubtful(ledger, "milk")
    cancelled = partial(cancel.cancel, run, by=ann(run.team), reason="not wanted")
    assert meet_lock(partial(gates_beside.lock, run.pk), partial(engine.advance, run.pk), cancelled) is True
    run.refresh_from_db()
    assert (run.ending, open_steps(run)) == ("cancelled", [])
    assert "database.lost" not in caplog.text


def test_what_was_left_behind_is_settled_though_a_gate_is_open_and_the_run_does_not_end(ledger: Path) -> None:
    run = advance_to_rest(doubtful(ledger))
    assert (run.status, run.next_step) == ("waiting", "")
    rewind.settle_now(run, by=ann(run.team))
    run = advance_to_rest(run)
    assert (run.status, open_steps(run)) == ("waiting", ["agree", "book"])
    decide(run, "book", "answer", answer={"choice": "was_not_done", "value": None})
    run = advance_to_rest(run)
    assert (run.status, run.next_step, open_steps(run)) == ("waiting", "", ["agree"])
    decide(run, "agree")
    assert advance_to_rest(run).status == "completed"


def test_a_run_that_is_cancelled_still_asks_about_what_it_left_behind(ledger: Path) -> None:
    run = advance_to_rest(doubtful(ledger))
    assert cancel.cancel(run, by=ann(run.team), reason="enough")
    run = advance_to_rest(run)
    assert (run.status, open_steps(run), gate(run, "agree").status) == ("waiting", ["book"], "withdrawn")
    decide(run, "book", "answer", answer={"choice": "was_done", "value": {"receipt": "r"}})
    run = advance_to_rest(run)
    assert (run.status, run.reason) == ("cancelled", "enough")
    assert Effect.objects.get(run=run, step="book", undoes=None, status="undone")
    assert ("answered", "agree") not in trail(run)


def test_a_rejection_ends_a_run_that_asks_another_question(ledger: Path) -> None:
    run = advance_to_rest(make_run("busy", ledger=str(ledger), does="fail"))
    decide(run, "agree", "reject", comment="No.", then="stop")
    run = advance_to_rest(run)
    assert (run.status, open_steps(run)) == ("cancelled", [])
    assert gate(run, "work").status == "withdrawn"
