"""Many timers that are due at once: one statement wakes them, whatever else happens to some of them at that moment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import redis
from django.db.models.functions import Now

from agents.errors import RewindRefused
from agents.models import Wait
from agents.serving import sweeps
from agents.serving.sweeper import Sweeper
from agents.waits import signals, step_waits
from checkpoints import actors, crash_points
from checkpoints.models import Event, Run
from tests.agents.waits.test_timers import pass_time
from tests.factories.driven_runs import advance, make_run, state
from tests.harness.examples import first_alone
from tests.harness.racing_threads import blocked, meet_lock, race
from tests.harness.sent_statements import sent

QUEUE = "agent.sleeper.1"
pytestmark = pytest.mark.usefixtures("server")


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    """What the steps did, a line each."""
    return str(tmp_path / "ledger")


def asleep(ledger: str, many: int) -> list[Run]:
    """Return runs that sleep and whose time has come."""
    runs = [advance(make_run("sleeper", ledger=ledger)) for _ in range(many)]
    for run in runs:
        pass_time(run)
    return runs


def times_queued(run: Run) -> int:
    """Count the events that say that the run was queued."""
    return Event.objects.filter(run_id=run.pk, kind="run.queued").count()


def statuses(runs: list[Run]) -> list[str]:
    """Return the runs' statuses as they are stored."""
    found = Run.objects.in_bulk([run.pk for run in runs])
    return [found[run.pk].status for run in runs]


def test_many_are_woken_by_as_many_statements_as_one(ledger: str) -> None:
    def of(many: int) -> int:
        runs = asleep(ledger, many)
        with sent() as statements:
            assert sweeps.wake_timers() == many
        assert statuses(runs) == ["queued"] * many
        assert [times_queued(run) for run in runs] == [1] * many
        return len(statements)

    assert of(1) == of(7) == 2  # the second reads their plans


def test_each_is_rung_for_once(ledger: str, server: redis.Redis) -> None:
    asleep(ledger, 5)
    server.delete(QUEUE)
    sweeper = Sweeper()
    assert sweeper.sweep_once()["woken"] == 5
    assert server.llen(QUEUE) == 5
    server.delete(QUEUE)  # a worker took them all
    assert sweeper.ring_due() == 0


def test_the_longest_overdue_are_woken_first_and_what_is_more_than_a_pass_wakes_by_the_next(
    ledger: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeps, "TOGETHER", 2)
    monkeypatch.setattr(sweeps, "MOST", 2)
    *late, first = asleep(ledger, 5)
    Run.objects.filter(pk=first.pk).update(wake_at="2000-01-01T00:00:00Z")
    assert sweeps.wake_timers() == 4
    assert statuses([first]) == ["queued"]
    assert [sweeps.wake_timers(), sweeps.wake_timers()] == [1, 0]
    assert [times_queued(run) for run in (first, *late)] == [1] * 5


@pytest.mark.parametrize("by_person", ["wakes it", "cancels it"])
def test_one_that_a_person_moves_at_that_moment_is_left_alone_and_stops_no_other(by_person: str, ledger: str) -> None:
    held, *others = asleep(ledger, 4)

    def move() -> None:
        if by_person == "wakes it":
            step_waits.wake_now(held, by=actors.SYSTEM)
        else:
            held.cancel(by=actors.SYSTEM)

    waiting_for_it: list[int] = []
    assert meet_lock(move, sweeps.wake_timers, then=lambda: waiting_for_it.append(blocked())) == 3
    assert waiting_for_it == [0]
    assert sweeps.wake_timers() == 0
    assert statuses(others) == ["queued"] * 3
    assert [times_queued(run) for run in (held, *others)] == [by_person == "wakes it", 1, 1, 1]


@pytest.mark.parametrize("turn", first_alone(range(5)))
def test_sweepers_and_people_at_one_moment_wake_each_run_once(turn: int, ledger: str) -> None:
    runs = asleep(ledger, 6)
    woken, ended = runs[turn % 6], runs[(turn + 3) % 6]
    before = {run.pk: Run.objects.get(pk=run.pk).version for run in runs}
    done = race([
        sweeps.wake_timers, lambda: step_waits.wake_now(woken, by=actors.SYSTEM),
        lambda: ended.cancel(by=actors.SYSTEM), sweeps.wake_timers,
    ])  # fmt: skip
    assert {type(each) for each in done} <= {int, bool, type(None), RewindRefused}
    assert [status for run, status in zip(runs, statuses(runs), strict=True) if run != ended] == ["queued"] * 5
    assert statuses([ended]) == ["cancelled"]
    assert [times_queued(run) for run in runs if run != ended] == [1] * 5
    for run in runs:
        moves = times_queued(run) + (run == ended)
        assert Run.objects.get(pk=run.pk).version == before[run.pk] + moves


@pytest.mark.parametrize("turn", first_alone(range(5)))
def test_a_signal_at_the_moment_of_its_timeout_wakes_the_run_once_and_is_read(turn: int) -> None:
    run = advance(make_run("listener", timeout=3600))
    Run.objects.filter(pk=run.pk).update(wake_at=Now())
    value: Any = {"percent": turn}
    race([sweeps.wake_timers, lambda: signals.send(run, "health", value, key="", by=actors.SYSTEM)])
    assert (statuses([run]), times_queued(run)) == (["queued"], 1)
    advance(run)
    assert state(run)["heard"] == [turn]


def test_a_sweeper_that_dies_once_they_are_woken_leaves_them_to_be_rung_for(
    ledger: str, server: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = asleep(ledger, 4)
    server.delete(QUEUE)
    monkeypatch.setenv("HOLDPOINT_CRASH", "after_timers:raise")
    with pytest.raises(crash_points.Crashed):
        Sweeper().sweep_once()
    monkeypatch.delenv("HOLDPOINT_CRASH")
    assert (statuses(runs), server.llen(QUEUE)) == (["queued"] * 4, 0)
    done = Sweeper().sweep_once()
    assert (done["woken"], done["rung"], server.llen(QUEUE)) == (0, 4, 4)
    assert [times_queued(run) for run in runs] == [1] * 4
    for run in runs:
        advance(run)
    assert not Wait.objects.unmet().filter(run__in=runs, due__gt=Now()).exists()
