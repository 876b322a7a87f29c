"""A step that sleeps holds no worker and goes on when it is time; past its deadline a run is cancelled."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now

from agents.errors import RewindRefused
from agents.models import Wait
from agents.moves import cancel, rewind
from agents.runs.start import start_run
from agents.serving import sweeps
from agents.serving.sweeper import Sweeper
from agents.waits import step_waits
from approvals.models import Gate
from checkpoints import actors, crash_points
from checkpoints.models import Event, Run
from checkpoints.store.claims import Claim
from tests.agents.steps.killable_workers import KillableWorkers, go_on
from tests.factories import ann, make_team
from tests.factories.driven_runs import advance, advance_to_rest, failures, make_run, open_gate, state


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """What the step did, a line each."""
    return tmp_path / "ledger"


def lines(ledger: Path, what: str) -> int:
    """How often the step did this."""
    return ledger.read_text().splitlines().count(what)


def pass_time(run: Run) -> None:
    """Let the time for which the run waits have passed."""
    Wait.objects.filter(run=run).update(due=Now() - timedelta(seconds=1))
    Run.objects.filter(pk=run.pk).update(wake_at=Now() - timedelta(seconds=1))


def test_a_run_that_sleeps_waits_until_it_is_time(ledger: Path) -> None:
    run = advance(make_run("sleeper", ledger=str(ledger)))
    assert (run.status, run.next_step, run.attempts, run.lease_until) == ("waiting", "sleep", 0, None)
    assert run.reason.startswith("Waits until ")
    assert run.wake_at == Wait.objects.current(run).due  # type: ignore[union-attr]
    assert advance(run).status == "waiting"  # nobody can claim it before

    pass_time(run)
    assert sweeps.wake_timers() == 1
    assert advance(run).status == "waiting"
    assert open_gate(run).step == "review"
    assert state(run)["slept"] == ["1 times"]
    assert Wait.objects.current(run) is None


def test_how_long_a_run_sleeps_goes_by_the_databases_clock(ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = datetime(2031, 5, 6, 7, 8, tzinfo=UTC)
    monkeypatch.setattr(Claim, "clock", lambda claim: there)
    run = advance(make_run("sleeper", ledger=str(ledger)))
    assert Wait.objects.get(run=run).due == there + timedelta(hours=1)


def test_a_step_that_waits_too_often_fails_and_says_what_to_do(ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its number had no room in the column, outside the step: the runner failed ten times, and then gave up."""
    monkeypatch.setattr(step_waits, "MOST", 2)
    run = advance(make_run("sleeper", ledger=str(ledger), times=3, seconds=-1))
    assert (run.status, open_gate(run).kind) == ("waiting", "recovery")
    assert "sleep has waited 2 times in one execution, the most. Let it return" in failures(run)[0].error


def test_a_step_starts_again_after_each_sleep_and_keeps_what_it_called_once(ledger: Path) -> None:
    run = make_run("sleeper", ledger=str(ledger), times=3)
    for number in (1, 2, 3):
        advance(run)
        assert Wait.objects.filter(run=run).count() == number
        pass_time(run)
        sweeps.wake_timers()
    advance(run)
    assert (open_gate(run).step, failures(run)) == ("review", [])
    assert (lines(ledger, "began"), lines(ledger, "asked")) == (4, 1)


def test_a_time_that_has_passed_is_not_waited_for(ledger: Path) -> None:
    run = advance(make_run("sleeper", ledger=str(ledger), seconds=-1))
    assert open_gate(run).step == "review"
    assert not Wait.objects.filter(run=run).exists()


def test_a_person_wakes_it_before_its_time(ledger: Path) -> None:
    run = advance(make_run("sleeper", ledger=str(ledger)))
    person = ann(run.team)
    step_waits.wake_now(run, by=actors.of_user(person))
    assert advance(run).status == "waiting"
    assert open_gate(run).step == "review"
    told = Event.objects.get(kind="timer.skipped", subject=f"run:{run.pk}")
    assert told.actor == f"user:{person.pk}"
    with pytest.raises(RewindRefused, match="is not waiting for a time"):
        step_waits.wake_now(run, by=actors.SYSTEM)


def test_a_timer_that_was_not_ended_whole_goes_on(ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = advance(make_run("sleeper", ledger=str(ledger)))
    monkeypatch.setenv("HOLDPOINT_CRASH", f"after_wake:raise:1:{ledger.parent / 'hits'}")
    with pytest.raises(crash_points.Crashed):
        step_waits.wake_now(run, by=actors.SYSTEM)
    run.refresh_from_db()
    assert (run.status, Event.objects.filter(kind="timer.skipped", subject=f"run:{run.pk}").count()) == ("waiting", 0)
    assert Wait.objects.current(run) is not None
    step_waits.wake_now(run, by=actors.SYSTEM)
    assert run.status == "queued"


def test_a_person_who_rewinds_it_ends_the_sleep_and_it_sleeps_anew(ledger: Path) -> None:
    run = advance(make_run("sleeper", ledger=str(ledger)))
    first = Wait.objects.current(run)
    rewind.rewind(run, to=1, by=ann(run.team))
    advance_to_rest(run)
    second = Wait.objects.current(run)
    assert first is not None
    assert second is not None
    assert (second.pk != first.pk, second.base != first.base) == (True, True)


def test_a_worker_that_is_killed_as_the_run_falls_asleep(ledger: Path, workers: KillableWorkers) -> None:
    run = make_run("sleeper", ledger=str(ledger))
    workers.kill(run, "after_wait@sleep")
    run = go_on(run)
    assert (run.status, Wait.objects.filter(run=run).count()) == ("waiting", 1)
    pass_time(run)
    sweeps.wake_timers()
    workers.kill(run, "before_save@sleep")
    go_on(run)
    assert open_gate(run).step == "review"
    assert lines(ledger, "asked") == 1


def started(ledger: str = "/dev/null", seconds: float = 3600, **how: Any) -> Run:
    """A run that sleeps once it is taken on, or asks."""
    return start_run("sleeper", {"ledger": ledger, "seconds": seconds}, by=actors.SYSTEM, team=make_team(), **how)


def overdue(run: Run) -> Run:
    """The run, past its deadline."""
    Run.objects.filter(pk=run.pk).update(deadline=Now() - timedelta(seconds=1))
    return run


@pytest.mark.parametrize("how", ["queued", "asleep", "asked"])
def test_a_run_past_its_deadline_is_cancelled_and_its_gate_withdrawn(how: str, tmp_path: Path) -> None:
    assert started().deadline is None
    run = started(str(tmp_path / "ledger"), seconds=-1 if how == "asked" else 3600, within=timedelta(hours=2))
    assert run.deadline is not None
    assert run.deadline - Run.objects.get(pk=run.pk).created_at < timedelta(hours=2, minutes=1)
    if how != "queued":
        assert advance(run).status == "waiting"
    sweeper = Sweeper()
    assert sweeper.end_overdue() == 0
    overdue(run)
    assert sweeper.end_overdue() == 1
    run.refresh_from_db()
    assert (run.status, run.reason) == ("cancelled", "Its deadline passed.")
    assert [gate.status for gate in Gate.objects.filter(run=run)] == ["withdrawn"] * (how == "asked")
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
