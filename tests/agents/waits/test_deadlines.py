"""A run past its deadline is cancelled, whatever it does then."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now

from agents.moves import cancel
from agents.runs.start import start_run
from agents.serving.sweeper import Sweeper
from approvals.models import Gate
from checkpoints import actors
from checkpoints.models import Event, Run
from tests.factories import make_team
from tests.factories.driven_runs import advance


def started(**how: Any) -> Run:
    """A run that sleeps once it is taken on."""
    return start_run("sleeper", {"ledger": "/dev/null"}, by=actors.SYSTEM, team=make_team(), **how)


def overdue(run: Run) -> Run:
    """The run, past its deadline."""
    Run.objects.filter(pk=run.pk).update(deadline=Now() - timedelta(seconds=1))
    return run


def test_a_run_has_the_deadline_that_it_was_started_with() -> None:
    run = started(within=timedelta(hours=2))
    assert run.deadline is not None
    assert run.deadline - Run.objects.get(pk=run.pk).created_at < timedelta(hours=2, minutes=1)
    assert started().deadline is None


@pytest.mark.parametrize("taken_on", [False, True])
def test_a_run_past_its_deadline_is_cancelled(taken_on: bool) -> None:
    run = started(within=timedelta(hours=2))
    if taken_on:
        assert advance(run).status == "waiting"
    sweeper = Sweeper()
    assert sweeper.end_overdue() == 0
    overdue(run)
    assert sweeper.end_overdue() == 1
    run.refresh_from_db()
    assert (run.status, run.reason) == ("cancelled", "Its deadline passed.")
    assert Event.objects.get(kind="run.cancelled", subject=f"run:{run.pk}").actor == "system"
    assert sweeper.end_overdue() == 0


def test_one_that_cannot_be_cancelled_is_tried_again_later_and_keeps_no_other_alive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was tried each second for ever, and as many as a pass takes on kept all later ones alive."""
    stuck, other = (overdue(started(within=timedelta(hours=2))) for _ in range(2))
    tried, real = [], cancel.cancel

    def refuse(run: Run, **how: Any) -> bool:
        tried.append(run.pk)
        if run.pk == stuck.pk:
            raise RuntimeError("broken")
        return real(run, **how)

    monkeypatch.setattr(cancel, "cancel", refuse)
    monkeypatch.setattr("agents.serving.sweeper.AT_ONCE", 1)
    sweeper = Sweeper()
    assert [sweeper.end_overdue() for _ in range(3)] == [0, 1, 0]
    assert tried == [stuck.pk, other.pk]
    sweeper.unended.forget()
    monkeypatch.setattr(cancel, "cancel", real)
    assert sweeper.end_overdue() == 1


def test_its_open_gate_is_withdrawn(tmp_path: Path) -> None:
    input = {"ledger": str(tmp_path / "ledger"), "seconds": -1}
    run = start_run("sleeper", input, by=actors.SYSTEM, team=make_team(), within=timedelta(hours=2))
    advance(run)
    gate = Gate.objects.open().get(run=run)
    overdue(run)
    Sweeper().end_overdue()
    gate.refresh_from_db()
    assert gate.status == "withdrawn"
