"""What an effect, its undo and a run's end have to bear where people change their minds at the worst moment."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now

from agents.definition import registry
from agents.models import Effect
from agents.moves import cancel, impact
from agents.moves import fork as forks
from agents.moves import rewind as rewinds
from checkpoints import crash_points
from checkpoints.models import Run
from tests.agents.compatibility.porter import SENT
from tests.factories import ann
from tests.factories.driven_runs import advance_to_rest, answer, decide, make_run, open_gate, state

from .moved_runs import after, before, edit, fates, lines, rewind


def skipped(ledger: str, flag: Path) -> Run:
    """A trip that bought a ticket, goes without it now, and could not sell it: a person is asked."""
    run = advance_to_rest(make_run("trip", ledger=ledger, undo_flag=str(flag)))
    flag.touch()
    edit(run, 1, mode="skip")
    assert advance_to_rest(run).status == "waiting"
    return run


@pytest.mark.parametrize(("choice", "fate"), [("undone", "undone"), ("keep", "kept")])
def test_an_answer_about_an_undo_counts_where_the_effect_would_be_adopted_at_the_head(
    ledger: str, tmp_path: Path, choice: str, fate: str
) -> None:
    """The answer was taken for a late report: the run went to the effect, and what was undone by hand was undone."""
    run = skipped(ledger, tmp_path / "undo")
    answer(run, choice)
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger, words=1) == ["buy"]
    assert fates(run) == [("buy", fate), ("undo of buy", "failed")]


def test_undo_now_does_not_set_a_run_going_again_that_was_about_to_end(ledger: str, tmp_path: Path) -> None:
    """It forgot how the run was to end, and the runner looked for the step after the last."""
    run = skipped(ledger, tmp_path / "undo")
    rewinds.settle_now(run, by=ann(run.team))
    assert advance_to_rest(run).status == "waiting"
    answer(run, "keep")
    assert advance_to_rest(run).status == "completed"


def left_open(ledger: str, flag: Path) -> Run:
    """A finished trip without a ticket, of which nobody knows whether one was bought."""
    flag.touch()
    run = advance_to_rest(make_run("trip", ledger=ledger, flag=str(flag)))
    edit(run, 1, mode="skip")
    advance_to_rest(run)
    answer(run, "left_open")
    assert advance_to_rest(run).status == "completed"
    return run


@pytest.mark.parametrize("to", ["choose", "buy"])
def test_what_was_left_open_is_asked_about_where_the_run_comes_to_it_again(
    ledger: str, tmp_path: Path, to: str
) -> None:
    """It was adopted as if it had been done, with a result that is none: the runner failed until it gave up."""
    run = left_open(ledger, tmp_path / "cut")
    rewind(run, 1 if to == "choose" else 2)
    advance_to_rest(run)
    assert (open_gate(run).step, open_gate(run).kind) == ("buy", "recovery")
    assert fates(run) == [("buy", "unknown")]
    answer(run, "happened", {"ticket": "T1"})
    assert advance_to_rest(run).status == "completed"
    assert (state(run)["ticket"], lines(ledger, words=1)) == ("T1", ["buy"])


def test_an_effect_that_was_ordered_again_stands_where_the_run_goes_back_to_after_it(ledger: str) -> None:
    """The order outlived the change of mind: what the state says is done was undone at the end."""
    run = advance_to_rest(make_run("booking", ledger=ledger))
    decide(run)
    advance_to_rest(run)
    rewind(run, before(run, "pay"))
    advance_to_rest(run)
    rewind(run, after(run, "pay"), confirm=True)
    advance_to_rest(run)
    decide(run)
    assert advance_to_rest(run).status == "completed"
    assert "refund" not in lines(ledger, words=1)
    assert fates(run)[1] == ("pay", "done")


def test_an_effect_whose_undo_nobody_saw_end_is_not_adopted(ledger: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker died right after the undo, a person sent the run back, and what had been undone was taken as done."""
    run = advance_to_rest(make_run("trip", ledger=ledger))
    edit(run, 1, mode="skip")
    monkeypatch.setenv("HOLDPOINT_CRASH", "after_undo:raise")
    with pytest.raises(crash_points.Crashed):
        advance_to_rest(run)
    monkeypatch.delenv("HOLDPOINT_CRASH")
    assert lines(ledger, words=1) == ["buy", "sell"]
    assert "stands" not in [row.verdict for row in impact.of_rewind(run, 1).rows if row.step == "buy"]
    rewind(run, 1)
    advance_to_rest(run)
    assert open_gate(run).title.startswith("“Buy” is not undone")
    answer(run, "undone")
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger, words=1) == ["buy", "sell", "buy"]
    assert [row.status for row in Effect.objects.filter(run=run, undoes=None).order_by("pk")] == ["undone", "done"]


def test_a_forks_word_to_do_one_effect_again_is_none_about_the_next(ledger: str) -> None:
    """The first "do it once more" of a step let every later one be done again without a question."""
    run = advance_to_rest(make_run("payments", ledger=ledger, people=["A", "B"]))
    fork = forks.fork(run, at=1, by=ann(run.team))
    advance_to_rest(fork)
    answer(fork, "do_again")
    advance_to_rest(fork)
    assert lines(ledger) == ["pay A", "pay B", "pay A"]
    assert open_gate(fork).title.startswith(f"R-{run.pk} did “Pay”")


def test_what_a_person_left_as_it_is_stays_so_where_the_run_goes_back_to_its_replacement(
    ledger: str, tmp_path: Path
) -> None:
    """The old one stood again beside the new one, and was undone once more at the end."""
    flag = tmp_path / "undo"
    run = advance_to_rest(make_run("trip", ledger=ledger, undo_flag=str(flag)))
    flag.touch()
    rewind(run, before(run, "buy"))
    advance_to_rest(run)
    answer(run, "keep")
    advance_to_rest(run)
    assert fates(run) == [("buy", "kept"), ("undo of buy", "failed"), ("buy", "done")]
    rewind(run, after(run, "buy"))
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger, words=1) == ["buy", "buy"]
    assert fates(run) == [("buy", "kept"), ("undo of buy", "failed"), ("buy", "done")]


def test_a_run_that_is_cancelled_while_it_asks_ends_as_cancelled(ledger: str, tmp_path: Path) -> None:
    """The withdrawn question made it end as failed, since nobody had answered."""
    flag = tmp_path / "cut"
    flag.touch()
    run = advance_to_rest(make_run("trip", ledger=ledger, flag=str(flag)))
    edit(run, 1, mode="skip")
    advance_to_rest(run)
    assert open_gate(run).title.startswith("Did “Buy” happen?")
    assert cancel.cancel(run, by=ann(run.team), reason="no trip")
    run = advance_to_rest(run)
    assert (run.status, run.settling, run.ending) == ("cancelled", False, "")


def test_undo_now_loses_no_decision_that_was_given_before(ledger: str, tmp_path: Path) -> None:
    """The undo failed, its question took the place of the gate that had been approved, and the gate asked again."""
    flag = tmp_path / "undo"
    run = advance_to_rest(make_run("booking", ledger=ledger, undo_flag=str(flag)))
    decide(run)
    advance_to_rest(run)
    flag.touch()
    edit(run, 1, size=2)
    advance_to_rest(run)
    decide(run)
    rewinds.settle_now(run, by=ann(run.team))
    advance_to_rest(run)
    assert open_gate(run).title.startswith("“Pay” is not undone")
    answer(run, "undo_again")
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger, words=1)[3:] == ["refund", "unbook", "book", "pay", "tell"]


def test_what_was_under_way_when_a_new_version_came_is_asked_about_before_it_is_done_anew(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new version's input was another, so nobody looked at what the old one had begun: it was sent twice."""
    settings.HOLDPOINT_AGENTS = ["tests.agents.compatibility.porter.one"]
    registry.forget()
    SENT.clear()
    run = advance_to_rest(make_run("porter", order="A-1"))
    decide(run)
    monkeypatch.setenv("HOLDPOINT_CRASH", "after_effect:raise")
    with pytest.raises(crash_points.Crashed):
        advance_to_rest(run)
    monkeypatch.delenv("HOLDPOINT_CRASH")
    Run.objects.filter(pk=run.pk).update(lease_until=Now() - dt.timedelta(seconds=1))
    settings.HOLDPOINT_AGENTS = ["tests.agents.compatibility.porter.two"]
    registry.forget()
    advance_to_rest(run)
    assert open_gate(run).title == "Send this reply?"
    decide(run)
    advance_to_rest(run)
    assert open_gate(run).title.startswith("Did “Send” happen?")
    assert len(SENT) == 1
    SENT.clear()
