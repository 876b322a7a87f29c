"""A run goes on while its gates are open, up to what depends on one of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.models import Effect
from agents.testing import Trial
from approvals.errors import EditRefused
from approvals.models import Policy
from checkpoints.models import Event
from tests.factories import make_team
from tests.factories.driven_runs import advance, advance_to_rest, make_run, state, trail

from .launches import decide, done, gate, launch, open_steps
from .launching import Launch


def test_a_run_goes_on_with_what_depends_on_no_open_gate(ledger: Path) -> None:
    run = launch(ledger)
    assert (run.status, run.next_step) == ("waiting", "publish")
    assert run.reason == "waits for the decision at “May this be published?”"
    assert open_steps(run) == ["pricing", "legal"]
    assert trail(run)[1:] == [("step", "draft"), ("asked", "pricing"), ("asked", "legal"), ("step", "translate")]
    assert done(ledger) == ["draft", "translate"]


def test_an_approval_is_written_where_the_run_is_by_then_and_the_rest_waits_for_the_other(ledger: Path) -> None:
    run = launch(ledger)
    decide(run, "legal")
    run = advance(run)
    assert (run.status, run.next_step) == ("waiting", "offer")
    assert run.reason == "waits for the decision at “Is the price right?”"
    assert trail(run)[-2:] == [("answered", "legal"), ("step", "publish")]
    assert open_steps(run) == ["pricing"]
    decide(run, "pricing", "edit", arguments={"price": 25})
    run = advance_to_rest(run)
    assert run.status == "completed"
    assert (state(run)["quote"], state(run)["sent"]) == ("25 EUR", ["charged 25"])
    assert done(ledger) == ["draft", "translate", "publish", "charge 25"]


def test_a_decision_about_what_is_not_next_is_taken_up_when_the_run_is_woken(ledger: Path) -> None:
    run = launch(ledger)
    decide(run, "pricing")
    run = advance(run)
    assert (run.status, run.next_step) == ("waiting", "publish")
    assert trail(run)[-1] == ("answered", "pricing")
    decide(run, "legal")
    run = advance_to_rest(run)
    assert run.status == "completed"
    assert done(ledger) == ["draft", "translate", "publish", "charge 10"]


def test_both_decided_before_the_run_is_taken_on(ledger: Path) -> None:
    run = launch(ledger)
    decide(run, "legal")
    decide(run, "pricing")
    run = advance_to_rest(run)
    assert run.status == "completed"
    assert [each for each in trail(run) if each[0] == "answered"] == [("answered", "legal"), ("answered", "pricing")]


def test_a_rejection_sends_the_run_back_and_withdraws_what_it_leaves_behind(ledger: Path) -> None:
    run = launch(ledger)
    first = gate(run, "pricing")
    decide(run, "legal", "reject", comment="Too short.", then="back", back_to="draft")
    run = advance(run)
    first.refresh_from_db()
    assert (first.status, first.outcome.words) == ("withdrawn", "The run was sent back to before this was asked.")
    assert open_steps(run) == ["pricing", "legal"]
    assert gate(run, "pricing").pk != first.pk
    assert state(run)["text"] == "About tea. Too short."
    assert done(ledger) == ["draft", "translate", "draft", "translate"]


def test_what_was_done_meanwhile_is_undone_when_the_other_gate_sends_the_run_back(ledger: Path) -> None:
    run = launch(ledger)
    decide(run, "legal")
    run = advance(run)
    decide(run, "pricing", "reject", comment="Too cheap.", then="back", back_to="draft")
    run = advance_to_rest(run)
    assert open_steps(run) == ["pricing", "legal"]
    decide(run, "legal")
    run = advance_to_rest(run)
    assert done(ledger)[-2:] == ["unpublish", "publish"]
    assert Effect.objects.filter(run=run, step="publish", status="done", undoes=None).count() == 1


def test_a_rejection_that_ends_the_run_withdraws_the_other_gate(ledger: Path) -> None:
    run = launch(ledger)
    decide(run, "legal", "reject", comment="No.", then="stop")
    run = advance_to_rest(run)
    assert (run.status, run.reason) == ("cancelled", "Rejected by Ann Okafor: No.")
    assert gate(run, "pricing").status == "withdrawn"
    assert open_steps(run) == []


def test_the_end_of_a_run_waits_for_its_open_gates() -> None:
    run = advance(make_run("survey", topic="tea"))
    assert (run.status, run.next_step, open_steps(run)) == ("waiting", "", ["agree"])
    decide(run, "agree", "edit", arguments={"note": "coffee"})
    run = advance(run)
    assert (run.status, state(run)["note"]) == ("completed", "coffee")
    assert Event.objects.filter(run_id=run.pk, kind="run.completed").count() == 1


def test_a_gate_that_nobody_answers_ends_the_run() -> None:
    trial = Trial(Launch, topic="tea")
    assert trial.open_gates == ["pricing", "legal"]
    trial.expire()
    assert (trial.status, trial.reason) == ("cancelled", "Nobody decided in time")
    assert trial.open_gates == []


def test_a_trial_decides_the_gate_that_it_names() -> None:
    trial = Trial(Launch, topic="tea")
    trial.at("legal").approve()
    assert trial.asks == "pricing"
    trial.edit("price", 12)
    assert (trial.status, trial.state["sent"]) == ("completed", ["charged 12"])


def test_the_whole_state_is_not_edited_at_a_gate_from_which_the_run_goes_on(ledger: Path) -> None:
    team = make_team()
    Policy.objects.filter(team=team, name="default").update(whole_state=True)
    run = advance(make_run("launch", team=team, topic="tea", ledger=str(ledger)))
    with pytest.raises(EditRefused):
        decide(run, "pricing", "edit", state={**gate(run, "pricing").saved.state, "topic": "coffee"})
