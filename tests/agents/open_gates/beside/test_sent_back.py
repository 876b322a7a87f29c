"""Runs that are sent back past an open gate, by a validator or by the decision at it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.errors import RewindRefused
from agents.moves import rewind
from approvals.models import Gate
from checkpoints.models import Checkpoint
from tests.factories import ann
from tests.factories.driven_runs import advance, advance_to_rest, make_run, state, trail

from ..launches import decide, done, gate, open_steps


def test_a_repair_that_goes_back_to_before_it_was_asked_withdraws_a_gate(ledger: Path) -> None:
    run = advance_to_rest(make_run("redone", topic="tea", ledger=str(ledger)))
    assert ("repair", "use") in trail(run)
    first, second = Gate.objects.filter(run=run, step="agree").order_by("pk")
    assert (first.status, first.outcome.words) == ("withdrawn", "The run was sent back to before this was asked.")
    assert (open_steps(run), second.status, run.status) == (["agree"], "open", "waiting")
    assert list(second.replaces.all()) == [first]
    decide(run, "agree")
    assert advance_to_rest(run).status == "completed"
    assert done(ledger) == ["make", "use", "use", "make", "use"]


def test_a_rejection_sends_the_run_back_to_before_it_was_asked_though_the_step_ran_since(ledger: Path) -> None:
    run = advance(make_run("looping", topic="tea", ledger=str(ledger)))
    assert (run.status, done(ledger)) == ("waiting", ["make 0", "make 1"])
    decide(run, "agree", "reject", comment="No.", then="back", back_to="make")
    run = advance_to_rest(run)
    assert [kind for kind, _ in trail(run)].count("rewind") == 1
    assert (run.status, open_steps(run), state(run)["turns"]) == ("waiting", ["agree"], 1)
    assert done(ledger) == ["make 0", "make 1", "make 0"]  # the second is reused


def test_a_run_is_not_moved_to_where_a_rejection_would_send_it_back_again(ledger: Path) -> None:
    run = advance(make_run("looping", topic="tea", ledger=str(ledger)))
    behind = Checkpoint.objects.get(run=run, kind="step", step="again", next_step="make").seq
    decide(run, "agree", "reject", comment="No.", then="stop")
    run = advance(run)
    assert run.status == "cancelled"
    with pytest.raises(RewindRefused, match="that is not there"):
        rewind.rewind(run, to=behind, by=ann(run.team))
    rewind.rewind(run, to=1, by=ann(run.team))
    assert open_steps(advance(run)) == ["agree"]
    assert gate(run, "agree").status == "open"
