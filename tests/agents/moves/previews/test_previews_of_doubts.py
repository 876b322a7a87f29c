"""A preview says of effects that people left open, ordered again, or that a fork stands on, what then happens."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.moves import fork as forks
from agents.moves import impact
from agents.moves import rewind as rewinds
from approvals.impact import ImpactVerdict
from checkpoints.models import Run
from tests.agents.moves.moved_runs import after, before, edit, fates, rewind
from tests.agents.moves.test_attacks import left_open
from tests.approvals.impact.property.moves import Answer
from tests.factories import ann
from tests.factories.driven_runs import advance_to_rest, answer, decide, make_run, open_gate


@pytest.mark.parametrize("to", [1, 2])
def test_what_was_left_open_is_foretold_to_be_asked_about(ledger: str, tmp_path: Path, to: int) -> None:
    run = left_open(ledger, tmp_path / "cut")
    told = impact.of_rewind(run, to)
    assert [row.step for row in told.asking] == ["buy"]
    assert not [row for row in told.stands if row.effect]
    rewind(run, to, seen=told.digest())
    advance_to_rest(run)
    assert (open_gate(run).step, open_gate(run).kind) == ("buy", "recovery")


def test_what_was_ordered_again_is_foretold_to_stand_behind_it(ledger: str) -> None:
    run = advance_to_rest(make_run("booking", ledger=ledger))
    decide(run)
    advance_to_rest(run)
    rewind(run, before(run, "pay"))
    advance_to_rest(run)
    told = impact.of_rewind(run, after(run, "pay"))
    assert [(row.verdict, row.why) for row in told.rows if row.step == "pay"] == [(ImpactVerdict.STANDS, "path")]
    rewind(run, after(run, "pay"), confirm=True, seen=told.digest())
    advance_to_rest(run)
    assert fates(run)[1] == ("pay", "done")


def test_a_question_about_what_is_left_behind_is_foretold_before_the_run_ends(ledger: str, tmp_path: Path) -> None:
    flag = tmp_path / "cut"
    flag.touch()
    run = advance_to_rest(make_run("trip", ledger=ledger, flag=str(flag)))
    assert open_gate(run).kind == "recovery"
    patch = [{"op": "replace", "path": "/mode", "value": "skip"}]
    told = impact.of_edit(run, 1, patch)
    assert (told.ends, [row.step for row in told.asking]) == (False, ["buy"])
    edit(run, 1, mode="skip", seen=told.digest())
    assert advance_to_rest(run).status == "waiting"
    assert open_gate(run).title.startswith("Did “Buy” happen?")


def test_what_a_fork_took_over_is_foretold_to_stay(ledger: str) -> None:
    run = advance_to_rest(make_run("trip", ledger=ledger))
    other: Run = forks.fork(run, at=2, by=ann(run.team))
    advance_to_rest(other)
    answer(other, "take")
    advance_to_rest(other)
    patch = [{"op": "replace", "path": "/mode", "value": "skip"}]
    told = impact.of_edit(run, 1, patch)
    assert [(row.step, row.verdict) for row in told.ahead if row.effect] == [("buy", ImpactVerdict.CANNOT)]
    edit(run, 1, mode="skip", seen=told.digest())
    advance_to_rest(run)
    assert fates(run) == [("buy", "kept")]


def test_an_order_to_do_it_once_more_is_no_permission(ledger: str) -> None:
    """It was told to run, and the fork asked for a permission first."""
    run = advance_to_rest(make_run("booking", ledger=ledger))
    decide(run)
    advance_to_rest(run)
    fork: Run = forks.fork(run, at=before(run, "pay"), by=ann(run.team))
    advance_to_rest(fork)
    told = Answer(open_gate(fork).pk, "do_again").foretell(fork)
    assert (told.asks, told.will) == ("review", ())
    answer(fork, "do_again")
    advance_to_rest(fork)
    assert open_gate(fork).step == "review"


def test_an_answer_while_the_run_settles_at_once_is_foretold_to_go_on(ledger: str, tmp_path: Path) -> None:
    """A person ordered the undo while a gate was open: the preview of an answer said that the run ends."""
    flag = tmp_path / "undo"
    run = advance_to_rest(make_run("booking", ledger=ledger, undo_flag=str(flag)))
    decide(run)
    advance_to_rest(run)
    edit(run, 1, size=2)
    advance_to_rest(run)
    flag.touch()
    rewinds.settle_now(run, by=ann(run.team))
    assert (advance_to_rest(run).settling, open_gate(run).kind) == (True, "recovery")
    told = Answer(open_gate(run).pk, "keep").foretell(run)
    assert (told.ends, told.asks) == (False, "review")
    answer(run, "keep")
    advance_to_rest(run)
    assert open_gate(run).step == "review"
