"""Runs past their deadline: moved by a person."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from agents.serving.sweeper import Sweeper
from checkpoints.models import Run
from tests.factories.driven_runs import advance_to_rest, make_run

from .moved_runs import before, edit, fates, lines, rewind


def due(run: Run, *, hours: float) -> Run:
    """The run, with a deadline that many hours from now."""
    Run.objects.filter(pk=run.pk).update(deadline=Now() + timedelta(hours=hours))
    run.refresh_from_db()
    return run


@pytest.mark.parametrize("ended_by_it", [False, True])
def test_a_run_that_a_person_moves_after_its_deadline_has_none_any_more(ledger: str, ended_by_it: bool) -> None:
    """The sweeper cancelled it within a second, and its worker undid by itself what lay after the target."""
    run = advance_to_rest(make_run("trip", ledger=ledger))
    if ended_by_it:
        rewind(run, before(run, "pack"))
        due(run, hours=-1)
        assert Sweeper().end_overdue() == 1
        assert Run.objects.get(pk=run.pk).status == "cancelled"
    due(run, hours=-1)
    rewind(run, before(run, "buy"))
    assert Sweeper().end_overdue() == 0
    assert advance_to_rest(run).status == "completed"
    assert (run.deadline, lines(ledger, words=1).count("sell")) == (None, 1)


def test_a_deadline_still_to_come_stays_with_a_run_that_a_person_moves(ledger: str) -> None:
    run = due(advance_to_rest(make_run("trip", ledger=ledger)), hours=2)
    kept = run.deadline
    edit(run, 1, mode="skip")
    assert (advance_to_rest(run).status, run.deadline) == ("completed", kept)
    assert fates(run) == [("buy", "undone"), ("undo of buy", "done")]
