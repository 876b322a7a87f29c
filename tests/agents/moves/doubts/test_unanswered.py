"""A question about an undo that nobody answers comes to an end, and so does its run."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.errors import RewindRefused
from agents.moves import cancel
from approvals.gates import closing
from approvals.models import Gate
from checkpoints.models import Run
from tests.agents.moves.moved_runs import after, die, edit, fates, lines, rewind
from tests.factories import ann
from tests.factories.driven_runs import advance_to_rest, decide, make_run, open_gate


def expire(run: Run) -> None:
    """The question's deadline passes, and a worker goes on."""
    gate = open_gate(run)
    closing.pass_deadline(gate)
    assert closing.expire(gate) is not None
    advance_to_rest(run)


def without_a_ticket(ledger: str, flag: Path) -> Run:
    """A trip that bought a ticket, and is to do without it."""
    run = advance_to_rest(make_run("trip", ledger=ledger, undo_flag=str(flag)))
    edit(run, 1, mode="skip")
    return run


def test_an_undo_in_doubt_that_nobody_answers_about_is_neither_tried_again_nor_asked_again(
    ledger: str, tmp_path: Path
) -> None:
    """Each deadline that passed had it asked once more, or begun anew, for ever."""
    run = without_a_ticket(ledger, tmp_path / "undo")
    die(run, "after_undo_intent")
    advance_to_rest(run)
    expire(run)
    assert (run.status, lines(ledger, words=1)) == ("completed", ["buy"])
    assert fates(run) == [("buy", "done"), ("undo of buy", "unknown")]
    assert Gate.objects.filter(run=run).count() == 1


def test_a_run_whose_work_was_completed_stays_so_where_nobody_answers_about_an_undo(
    ledger: str, tmp_path: Path
) -> None:
    """It ended as failed: what failed is the undo, which is said beside it."""
    flag = tmp_path / "undo"
    run = without_a_ticket(ledger, flag)
    flag.touch()
    advance_to_rest(run)
    expire(run)
    assert (run.status, run.reason) == ("completed", "“Buy” is not settled; Nobody decided in time")
    assert fates(run) == [("buy", "done"), ("undo of buy", "failed")]


@pytest.mark.parametrize("how", ["in doubt", "refused"])
def test_a_cancel_while_an_undo_is_asked_about_settles_the_rest_and_names_that_one_as_kept(
    ledger: str, tmp_path: Path, how: str
) -> None:
    """The question went with the run's end, and the room stayed booked off the path, as what nobody had to settle."""
    flag = tmp_path / "undo"
    run = advance_to_rest(make_run("booking", ledger=ledger, undo_flag=str(flag)))
    decide(run)
    advance_to_rest(run)
    edit(run, 1, size=2)
    advance_to_rest(run)
    decide(run)
    if how == "in doubt":
        die(run, "after_undo")
    else:
        flag.touch()
    advance_to_rest(run)
    assert open_gate(run).title.startswith("“Pay” is not undone")
    cancel.cancel(run, by=ann(run.team), reason="no need")
    advance_to_rest(run)
    assert (run.status, run.reason) == ("cancelled", "no need")
    assert fates(run)[:3] == [("book", "undone"), ("pay", "kept"), ("tell", "kept")]


def test_what_an_undo_in_doubt_may_have_taken_back_is_not_gone_back_to_after_a_cancel(ledger: str) -> None:
    """The run went on with a ticket that had been sold: the cancelled question had taken the doubt with it."""
    run = advance_to_rest(make_run("trip", ledger=ledger))
    bought = after(run, "buy")
    edit(run, 1, mode="skip")
    die(run, "after_undo")
    advance_to_rest(run)
    assert open_gate(run).title.startswith("“Buy” is not undone")
    cancel.cancel(run, by=ann(run.team), reason="no need")
    assert advance_to_rest(run).status == "cancelled"
    with pytest.raises(RewindRefused, match="buy is done"):
        rewind(run, bought)
