"""Where an effect was taken back and ordered anew, a run goes back to the one that stands, and to no earlier one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.errors import RewindRefused
from checkpoints.models import Run
from tests.factories.driven_runs import advance_to_rest, answer, decide, make_run, open_gate, state

from .moved_runs import after, before, die, fates, lines, rewind


def ordered_anew(ledger: str, **input: Any) -> tuple[Run, int]:
    """A booking that was paid, and sent back to pay once more: it asks; and where it stood when it had paid."""
    run = advance_to_rest(make_run("booking", ledger=ledger, **input))
    decide(run)
    advance_to_rest(run)
    paid = after(run, "pay")
    rewind(run, before(run, "pay"))
    assert advance_to_rest(run).status == "waiting"
    return run, paid


def stays(run: Run, to: int) -> None:
    """The run is not moved to this checkpoint, and nothing of it is touched."""
    was = (run.status, run.seq, run.token, fates(run))
    with pytest.raises(RewindRefused, match="pay is done, but it was undone since"):
        rewind(run, to, confirm=True)
    run.refresh_from_db()
    assert (run.status, run.seq, run.token, fates(run)) == was


def test_what_was_undone_and_done_anew_is_not_gone_back_to(ledger: str) -> None:
    """The newest charge stood, so the run went on with a state that named the one that had been refunded."""
    run, paid = ordered_anew(ledger)
    decide(run)
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger, words=1) == ["book", "pay", "tell", "refund", "pay", "tell"]
    stays(run, paid)


def test_what_was_undone_is_not_gone_back_to_while_the_one_done_anew_is_in_doubt(ledger: str, tmp_path: Path) -> None:
    """The run completed with the refunded charge, and nobody was asked about the other any more."""
    flag = tmp_path / "cut"
    run, paid = ordered_anew(ledger, flag=str(flag))
    flag.touch()
    decide(run)
    advance_to_rest(run)
    stays(run, paid)
    assert open_gate(run).title.startswith("Did “Pay” happen?")


def test_what_was_undone_is_not_gone_back_to_where_the_one_done_anew_never_happened(ledger: str) -> None:
    """The run completed as paid, although its only charge had been refunded."""
    run, paid = ordered_anew(ledger)
    decide(run)
    die(run, "after_intent@pay")
    advance_to_rest(run)
    answer(run, "not_happened")
    die(run, "before_step@pay")
    run.refresh_from_db()
    assert fates(run)[-1] == ("pay", "failed")
    stays(run, paid)


def test_the_one_that_stands_is_gone_back_to(ledger: str) -> None:
    run, _ = ordered_anew(ledger)
    decide(run)
    advance_to_rest(run)
    charge = state(run)["charge"]
    rewind(run, after(run, "pay"), confirm=True)
    advance_to_rest(run)
    decide(run)
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger, words=1) == ["book", "pay", "tell", "refund", "pay", "tell", "tell"]
    assert state(run)["charge"] == charge
