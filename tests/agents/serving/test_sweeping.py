"""The sweeper: what is due is rung for, once at a time, and what is overdue is closed."""

from __future__ import annotations

import os
import time
from datetime import timedelta

import psycopg
import pytest
import redis
from django.db.models.functions import Now

from agents.models import SweeperPass
from agents.ringing import doorbell
from agents.ringing import ring_pauses as ringing
from agents.ringing.ring_pauses import LONGEST, RecentRings
from agents.serving.sweeper import Sweeper
from agents.serving.sweeps import wake_timers
from approvals.gates import closing
from approvals.models import Gate
from checkpoints.models import Run
from checkpoints.postgresql.sql import run_sql
from tests.conftest import Starter
from tests.factories import make_policy, make_team
from tests.factories.driven_runs import advance, make_run, open_gate
from tests.harness.altered_rows import altered
from tests.harness.waiting import until

QUEUE = "agent.hopper.1"


def lost(run: Run, server: redis.Redis) -> Run:
    """The run with its doorbell lost."""
    server.delete(QUEUE)
    return run


def test_a_queued_run_is_rung_for_once_and_again_after_a_pause(server: redis.Redis) -> None:
    lost(make_run("hopper"), server)
    sweeper = Sweeper()
    assert [sweeper.ring_due(), sweeper.ring_due()] == [1, 0]
    assert server.llen(QUEUE) == 1
    sweeper.bells.rung = {run: (at - 5, pause) for run, (at, pause) in sweeper.bells.rung.items()}
    assert sweeper.ring_due() == 0  # its message waits
    server.delete(QUEUE)
    assert sweeper.ring_due() == 1


def test_the_pause_doubles_and_has_an_end() -> None:
    bells, now = RecentRings(), 1000.0
    pauses = []
    for _ in range(9):
        bells.rang(7, 1, now)
        pauses.append(bells.rung[7, 1][1])
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]
    assert bells.quiet(now + 59) == [(7, 1)]
    assert bells.quiet(now + 61) == []


def test_a_run_that_was_claimed_since_the_last_ring_is_rung_for_without_the_pause(server: redis.Redis) -> None:
    """The pause of a run that queued for a minute once held back its rescue when its worker then died."""
    run = lost(make_run("hopper"), server)
    sweeper = Sweeper()
    assert [sweeper.ring_due(), sweeper.ring_due()] == [1, 0]
    server.delete(QUEUE)
    Run.objects.filter(pk=run.pk).update(status="running", token=1, lease_until=Now() - timedelta(seconds=1))
    assert sweeper.ring_due() == 1


def test_a_flush_makes_it_ring_for_all_again(server: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ringing, "FIRST", 600.0)  # a pass may take longer than the first pause
    lost(make_run("hopper"), server)
    sweeper = Sweeper()
    assert sweeper.sweep_once()["rung"] == 1
    assert sweeper.sweep_once()["rung"] == 0
    server.flushall()
    assert sweeper.sweep_once()["rung"] == 1


def test_a_run_whose_worker_is_gone_is_rung_for_and_one_whose_worker_lives_or_in_its_backoff_is_not(
    server: redis.Redis,
) -> None:
    run, soon, past = lost(make_run("hopper"), server), timedelta(seconds=9), timedelta(seconds=-1)
    for columns, rung in (
        ({"wake_at": Now() + soon}, 0),
        ({"wake_at": None, "status": "running", "lease_until": Now() + soon}, 0),
        ({"lease_until": Now() + past}, 1),
    ):
        Run.objects.filter(pk=run.pk).update(**columns)
        assert Sweeper().ring_due() == rung


def test_a_waiting_run_is_woken_when_its_timer_is_due(server: redis.Redis) -> None:
    run = make_run("hopper")
    Run.objects.filter(pk=run.pk).update(status="waiting", wake_at=Now() - timedelta(seconds=1))
    assert wake_timers() == 1
    run.refresh_from_db()
    assert run.status == "queued"


def due_later(number: int) -> list[Gate]:
    """Gates of one team with a deadline."""
    team = make_team()
    make_policy(team, name="default", deadline=timedelta(hours=1))
    return [open_gate(advance(make_run("asker", team=team))) for _ in range(number)]


def test_an_overdue_gate_expires_and_its_run_is_queued(server: redis.Redis) -> None:
    [gate] = due_later(1)
    Sweeper().expire_gates()  # those that other tests left are overdue, too
    gate.refresh_from_db()
    assert gate.status == "open"
    closing.pass_deadline(gate)
    assert Sweeper().expire_gates() >= 1
    gate.refresh_from_db()
    assert (gate.status, Run.objects.get(pk=gate.run_id).status) == ("expired", "queued")


def test_a_gate_that_cannot_expire_is_tried_again_after_a_pause_and_stops_no_other(
    server: redis.Redis, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was tried every second, with a traceback each time."""
    monkeypatch.setattr(ringing, "FIRST", ringing.LONGEST)  # a pass may take a second here: other tests left gates too
    stuck, other = due_later(2)
    closing.pass_deadline(stuck)
    sweeper = Sweeper()
    with altered(stuck.standing(), body=b"no proposal"):
        sweeper.expire_gates()
        sweeper.expire_gates()
        told = [each.msg for each in caplog.records if isinstance(each.msg, dict)]
        failed = [each for each in told if each["event"] == "gate.not_expired" and each["gate"] == stuck.pk]
        assert len(failed) == 1
        closing.pass_deadline(other)
        sweeper.expire_gates()
        assert [Gate.objects.get(pk=gate.pk).status for gate in (stuck, other)] == ["open", "expired"]
    sweeper.unclosed.rung = {gate: (at - 100, pause) for gate, (at, pause) in sweeper.unclosed.rung.items()}
    sweeper.expire_gates()
    assert Gate.objects.get(pk=stuck.pk).status == "expired"


def test_a_gate_that_moved_on_since_it_could_not_expire_is_tried_at_once(server: redis.Redis) -> None:
    """It waited out the pause of what it had been."""
    [gate] = due_later(1)
    closing.pass_deadline(gate)
    sweeper = Sweeper()
    sweeper.unclosed.rang(gate.pk, gate.version, time.monotonic() + 600)
    sweeper.expire_gates()
    assert Gate.objects.get(pk=gate.pk).status == "open"
    sweeper.unclosed.forget()
    sweeper.unclosed.rang(gate.pk, gate.version - 1, time.monotonic() + 600)
    sweeper.expire_gates()
    assert Gate.objects.get(pk=gate.pk).status == "expired"


def test_a_table_that_others_keep_locked_stops_no_ring(server: redis.Redis) -> None:
    lost(run := make_run("hopper"), server)
    sweeper = Sweeper()
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"]) as console:
        console.execute("LOCK TABLE checkpoints_event")
        sweeper.sweep_once()
    assert (run.pk, run.token) in sweeper.bells.rung


def test_a_part_that_fails_stops_no_other_and_the_pass_does_not_count(
    server: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost(run := make_run("hopper"), server)
    sweeper = Sweeper()
    monkeypatch.setattr(sweeper, "expire_gates", lambda: 1 // 0)
    monkeypatch.setattr("agents.serving.sweeper.wake_timers", lambda: 1 // 0)
    SweeperPass.objects.update(at=Now() - timedelta(hours=1))
    with pytest.raises(ExceptionGroup, match="parts of the pass failed") as failed:
        sweeper.sweep_once()
    assert len(failed.value.exceptions) == 2
    assert (run.pk, run.token) in sweeper.bells.rung
    assert not SweeperPass.objects.filter(at__gte=Now() - timedelta(minutes=30)).exists()


def test_a_gate_or_a_table_that_others_keep_locked_stops_nothing_else(server: redis.Redis) -> None:
    """The pass waited for the row until its statement was ended, and began with the same gate again for ever."""
    held, other = due_later(2)
    closing.pass_deadline(held)
    closing.pass_deadline(other)
    lost(run := make_run("hopper"), server)
    sweeper = Sweeper()
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"]) as console:
        console.execute("SELECT 1 FROM approvals_gate WHERE id = %s FOR UPDATE", [held.pk])
        console.execute("LOCK TABLE checkpoints_verification")
        sweeper.sweep_once()
        assert [Gate.objects.get(pk=gate.pk).status for gate in (held, other)] == ["open", "expired"]
        assert (held.pk, held.version) in sweeper.unclosed.rung
        assert (run.pk, run.token) in sweeper.bells.rung
        assert run_sql("SHOW lock_timeout", []) == [("0",)]
    sweeper.unclosed.forget()
    sweeper.sweep_once()
    assert Gate.objects.get(pk=held.pk).status == "expired"


def test_a_pass_leaves_its_time_by_the_databases_clock(server: redis.Redis) -> None:
    Sweeper().sweep_once()
    SweeperPass.objects.update(at=Now() - timedelta(hours=1))
    Sweeper().sweep_once()
    assert SweeperPass.objects.filter(at__gte=Now() - timedelta(seconds=5)).count() == 1


def test_a_dead_redis_stops_no_pass(settings: object) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"  # type: ignore[attr-defined]
    assert Sweeper().sweep_once()["expired"] == 0


def test_a_worker_that_begins_ends_the_pauses_of_runs_whose_messages_died_with_others(
    celery_worker: Starter, server: redis.Redis
) -> None:
    """Such a run waited for up to a minute, though a worker was there and idle."""
    run, sweeper = make_run("hopper"), Sweeper()
    server.delete(QUEUE)  # a worker took the message, and died
    sweeper.sweep_once()  # which finds no mark
    sweeper.bells.rung[run.pk, run.token] = (time.monotonic(), LONGEST)
    server.delete(QUEUE)
    sweeper.sweep_once()
    assert server.llen(QUEUE) == 0
    celery_worker("-c", "1")
    until(lambda: not server.exists(doorbell.MARK), what="the worker asks for doorbells")
    sweeper.sweep_once()
    until(lambda: Run.objects.get(pk=run.pk).status == "completed", what="the run is taken at once")
