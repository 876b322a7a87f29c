"""Runs past their deadline: moved by a person, or in the middle of an effect."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from agents.serving.sweeper import Sweeper
from checkpoints.models import Run
from tests.agents.pages.moves.sent_orders import member
from tests.factories.driven_runs import advance, advance_to_rest, answer, make_run, open_gate

from .moved_runs import before, die, edit, fates, lines, rewind


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


@pytest.mark.parametrize("hours", [-1, 2])
def test_a_move_says_before_it_is_ordered_that_it_takes_the_deadline_off(ledger: str, hours: float) -> None:
    run = due(advance_to_rest(make_run("trip", ledger=ledger)), hours=hours)
    client, words = member(run), "It has passed. This removes it"
    form = {"kind": "rewind", "at": before(run, "buy"), "panel": 1}
    assert (words in client.post(f"/runs/{run.pk}/impacts/", form).content.decode()) == (hours < 0)
    deadline = run.deadline.isoformat() if run.deadline and hours < 0 else None
    patch = [{"op": "add", "path": "/mode", "value": "skip"}]
    for kind, patched, said in (("rewind", [], deadline), ("edit", patch, deadline), ("fork", [], None)):
        order = {"kind": kind, "at": 1, "patch": patched}
        told = client.post(f"/api/runs/{run.pk}/impacts", order, content_type="application/json").json()["deadline"]
        assert told == (said and said.replace("+00:00", "Z"))


@pytest.mark.parametrize(
    ("said", "value", "fate"), [("happened", {"ticket": "1"}, "done"), ("not_happened", None, "failed")]
)
def test_a_deadline_in_the_middle_of_an_effect_leaves_its_question_open(
    ledger: str, said: str, value: Any, fate: str
) -> None:
    """The run was cancelled with its gate, and nobody was asked any more whether the effect had happened."""
    run = make_run("trip", ledger=ledger)
    die(run, "after_effect")
    due(run, hours=-1)
    sweeper = Sweeper()
    assert sweeper.end_overdue() == 0
    run.refresh_from_db()
    assert (run.status, run.halt) == ("running", True)
    assert advance_to_rest(run).status == "waiting"
    assert (sweeper.end_overdue(), open_gate(run).step, fates(run)) == (0, "buy", [("buy", "unknown")])
    answer(run, said, value)
    assert sweeper.end_overdue() == 0  # the answer is not applied yet
    assert advance(run).status == "queued"
    assert sweeper.end_overdue() == 1
    run.refresh_from_db()
    assert (run.status, run.reason, fates(run)) == ("cancelled", "Its deadline passed.", [("buy", fate)])
    assert lines(ledger, words=1) == ["buy"]
