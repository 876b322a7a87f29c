"""A run goes on while its gates are open, up to what depends on one of them; decisions and moves race with it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agents.errors import RewindRefused
from agents.gates import opening
from agents.models import Effect
from agents.moves import fork, rewind
from agents.runner import engine
from agents.testing import Trial
from approvals.errors import EditRefused
from approvals.models import Policy
from checkpoints.models import Checkpoint, Event, Run
from tests.agents.open_gates.launches import decide, done, gate, launch, open_steps
from tests.agents.open_gates.launching import Launch
from tests.factories import ann, make_team
from tests.factories.driven_runs import advance, advance_to_rest, make_run, state, trail
from tests.harness.racing_threads import race


def test_a_run_goes_on_with_what_depends_on_no_open_gate_and_an_approval_is_written_where_it_is_by_then(
    ledger: Path,
) -> None:
    run = launch(ledger)
    assert (run.status, run.next_step) == ("waiting", "publish")
    assert run.reason == "waits for the decision at “May this be published?”"
    assert open_steps(run) == ["pricing", "legal"]
    assert trail(run)[1:] == [("step", "draft"), ("asked", "pricing"), ("asked", "legal"), ("step", "translate")]
    assert done(ledger) == ["draft", "translate"]
    decide(run, "legal")
    run = advance(run)
    assert (run.status, run.next_step, open_steps(run)) == ("waiting", "offer", ["pricing"])
    assert run.reason == "waits for the decision at “Is the price right?”"
    assert trail(run)[-2:] == [("answered", "legal"), ("step", "publish")]
    decide(run, "pricing", "edit", arguments={"price": 25})
    run = advance_to_rest(run)
    assert run.status == "completed"
    assert (state(run)["quote"], state(run)["sent"]) == ("25 EUR", ["charged 25"])
    assert done(ledger) == ["draft", "translate", "publish", "charge 25"]


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


def test_the_end_of_a_run_waits_for_its_open_gates() -> None:
    run = advance(make_run("survey", topic="tea"))
    assert (run.status, run.next_step, open_steps(run)) == ("waiting", "", ["agree"])
    decide(run, "agree", "edit", arguments={"note": "coffee"})
    run = advance(run)
    assert (run.status, state(run)["note"]) == ("completed", "coffee")
    assert Event.objects.filter(run_id=run.pk, kind="run.completed").count() == 1


def test_a_trial_decides_the_gate_that_it_names_and_one_that_nobody_answers_ends_the_run() -> None:
    trial = Trial(Launch, topic="tea")
    trial.at("legal").approve()
    assert trial.asks == "pricing"
    trial.edit("price", 12)
    assert (trial.status, trial.state["sent"]) == ("completed", ["charged 12"])
    trial = Trial(Launch, topic="tea")
    assert trial.open_gates == ["pricing", "legal"]
    trial.expire()
    assert (trial.status, trial.reason, trial.open_gates) == ("cancelled", "Nobody decided in time", [])


def test_the_whole_state_is_not_edited_at_a_gate_from_which_the_run_goes_on(ledger: Path) -> None:
    team = make_team()
    Policy.objects.filter(team=team, name="default").update(whole_state=True)
    run = advance(make_run("launch", team=team, topic="tea", ledger=str(ledger)))
    with pytest.raises(EditRefused):
        decide(run, "pricing", "edit", state={**gate(run, "pricing").saved.state, "topic": "coffee"})


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
    for _ in range(2):
        run = launch(ledger)
        Run.objects.filter(pk=run.pk).update(status="queued", wake_at=None)
        race([partial(decide, run, "legal"), partial(decide, run, "pricing"), partial(engine.advance, run.pk)])
        run = advance_to_rest(run) if Run.objects.get(pk=run.pk).status != "completed" else Run.objects.get(pk=run.pk)
        assert run.status == "completed"
        assert sorted(step for kind, step in trail(run) if kind == "answered") == ["legal", "pricing"]
    assert done(ledger).count("charge 10") == 2


def test_both_reject_at_once_and_one_of_them_sends_the_run_back(ledger: Path) -> None:
    run = launch(ledger)
    decide(run, "legal", "reject", comment="Too short.", then="back", back_to="draft")
    decide(run, "pricing", "reject", comment="No.", then="stop")
    run = advance_to_rest(run)
    assert open_steps(run) == ["pricing", "legal"]
    assert state(run)["text"] == "About tea. Too short."


def number(run: Run, kind: str, step: str) -> int:
    """The number of the newest checkpoint of this kind and step."""
    return int(Checkpoint.objects.filter(run=run, kind=kind, step=step).latest("seq").seq)


def test_a_rewind_to_after_it_was_asked_leaves_a_gate_open(ledger: Path) -> None:
    run = launch(ledger)
    asked = gate(run, "pricing")
    rewind.rewind(run, to=number(run, "asked", "pricing"), by=ann(run.team))
    assert open_steps(run) == ["pricing"]
    run = advance(run)
    assert open_steps(run) == ["pricing", "legal"]
    assert gate(run, "pricing").pk == asked.pk
    decide(run, "pricing", "edit", arguments={"price": 30})
    decide(run, "legal")
    run = advance_to_rest(run)
    assert (run.status, state(run)["sent"]) == ("completed", ["charged 30"])


def test_a_rewind_to_before_it_was_asked_withdraws_it_and_asks_again(ledger: Path) -> None:
    run = launch(ledger)
    asked, behind = gate(run, "pricing"), number(run, "step", "translate")
    rewind.rewind(run, to=1, by=ann(run.team))
    assert open_steps(run) == []
    run = advance(run)
    assert open_steps(run) == ["pricing", "legal"]
    again = gate(run, "pricing")
    assert again.pk != asked.pk
    assert list(again.replaces.values_list("pk", flat=True)) == [asked.pk]
    with pytest.raises(RewindRefused, match="that is not there"):  # its withdrawn question would never be answered
        rewind.rewind(run, to=behind, by=ann(run.team))


def test_an_answer_holds_after_a_rewind_to_between_the_question_and_the_answer(ledger: Path) -> None:
    run = launch(ledger)
    decide(run, "legal")
    run = advance(run)
    assert trail(run)[-1] == ("step", "publish")
    rewind.rewind(run, to=number(run, "asked", "legal"), by=ann(run.team))
    run = advance(run)
    assert (run.status, run.next_step, open_steps(run)) == ("waiting", "offer", ["pricing"])
    decide(run, "pricing")
    assert advance_to_rest(run).status == "completed"
    assert done(ledger).count("publish") - done(ledger).count("unpublish") == 1


def test_a_fork_begins_before_a_question_or_after_its_answer(ledger: Path) -> None:
    run = launch(ledger)
    with pytest.raises(RewindRefused, match="that is not there"):
        fork.fork(run, at=number(run, "step", "translate"), by=ann(run.team))
    made = fork.fork(run, at=number(run, "step", "draft"), by=ann(run.team))
    assert open_steps(advance(made)) == ["pricing", "legal"]
    assert open_steps(run) == ["pricing", "legal"]


def test_an_edit_beside_an_open_gate_keeps_it_and_its_answer_is_written_over_the_edit(ledger: Path) -> None:
    run = launch(ledger)
    patch = [{"op": "replace", "path": "/translation", "value": "Ueber Tee"}]
    rewind.edit(run, at=number(run, "step", "translate"), patch=patch, by=ann(run.team))
    assert open_steps(run) == ["pricing", "legal"]
    decide(run, "pricing", "edit", arguments={"price": 40})
    decide(run, "legal")
    run = advance_to_rest(run)
    # The translation changed after people had agreed to publish it: they are asked again.
    assert (run.status, open_steps(run)) == ("waiting", ["legal"])
    decide(run, "legal")
    run = advance_to_rest(run)
    assert (run.status, state(run)["sent"], state(run)["translation"]) == ("completed", ["charged 40"], "Ueber Tee")
