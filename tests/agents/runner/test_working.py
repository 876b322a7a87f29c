"""Real Celery workers and a real sweeper, against lost messages, lost workers and lost leases."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
import redis

from agents.definition.registered import queue_of
from agents.ringing.ring_pauses import LONGEST
from agents.tasks import advance as doorbell
from checkpoints.models import Checkpoint, Event, Run
from tests.agents.steps.killable_workers import go_on
from tests.factories.driven_runs import decide, effects, make_run, state
from tests.harness import services
from tests.harness.examples import first_alone
from tests.harness.waiting import until

LEASE = 2.0  # renewed every third of it, on a machine that may be loaded
QUICK = {"HOLDPOINT_LEASE": str(LEASE), "HOLDPOINT_TIME_SLICE": "5"}
Starter = Callable[..., services.Service]
LOCK = 712_033
# A deferred trigger runs inside COMMIT: there it waits until the test lets go.
SLOW_COMMIT = f"""
CREATE FUNCTION hold_commit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.step = 'grow' AND NEW.seq = 3 THEN PERFORM pg_advisory_xact_lock_shared({LOCK}); END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER hold_commit AFTER INSERT ON checkpoints_checkpoint
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION hold_commit();
"""
GONE = "DROP TRIGGER IF EXISTS hold_commit ON checkpoints_checkpoint; DROP FUNCTION IF EXISTS hold_commit()"
IN_COMMIT = f"SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = {LOCK} AND NOT granted"


def becomes(run: Run, status: str) -> Run:
    def there() -> bool:
        run.refresh_from_db()
        return run.status == status

    until(there, what=f"{run} is {status}")
    return run


def lines(ledger: Path) -> list[str]:
    return ledger.read_text().splitlines() if ledger.exists() else []


def ring_again(run: Run) -> None:
    doorbell.apply_async(args=(run.pk,), queue=queue_of(run.plan.agent, run.plan.version))


def test_a_run_goes_from_input_to_end_on_a_worker_and_no_worker_waits_at_the_gate(
    celery_worker: Starter, ledger: Path
) -> None:
    celery_worker("-c", "1", env=QUICK)
    run = make_run("payer", ledger=str(ledger))
    becomes(run, "waiting")
    other = make_run("hopper")  # the only process is free meanwhile
    becomes(other, "completed")
    decide(run)
    becomes(run, "completed")
    assert [line.split()[0] for line in lines(ledger)] == ["pay", "mail"]


def test_a_worker_killed_in_an_effect_and_a_flushed_redis_delay_a_run_by_its_lease_only(
    celery_worker: Starter, sweeper: Starter, ledger: Path, redis_url: str, tmp_path: Path
) -> None:
    crash = QUICK | {"HOLDPOINT_CRASH": f"after_effect:kill:1:{tmp_path / 'crashed'}"}
    first = celery_worker("-c", "1", env=crash)
    run = make_run("payer", ledger=str(ledger))
    becomes(run, "waiting")
    decide(run)
    until(lambda: (tmp_path / "crashed").exists(), what="the crash point is reached")
    first.kill()
    redis.Redis.from_url(redis_url).flushall()
    celery_worker("-c", "1", env=QUICK)
    sweeper(env=QUICK)
    began = time.monotonic()
    becomes(run, "completed")
    assert time.monotonic() - began < LEASE + LONGEST / 2  # with time for a loaded machine, and no pause between rings
    assert len({line.split()[1] for line in lines(ledger) if line.startswith("pay")}) == 1
    assert [row.attempts for row in effects(run, "pay")] == [2]


def test_a_message_that_is_delivered_three_times_at_once_lands_each_step_once(
    celery_worker: Starter, ledger: Path
) -> None:
    run = make_run("grower", steps=5, pause=0.05, ledger=str(ledger))
    ring_again(run)
    ring_again(run)
    celery_worker("-c", "3", env=QUICK)
    becomes(run, "completed")
    ring_again(run)
    assert lines(ledger) == [f"grow {number}" for number in range(5)]
    assert Event.objects.filter(run_id=run.pk, kind="run.running").count() == 1
    assert Checkpoint.objects.filter(run=run).count() == 6


def test_a_step_that_outlives_the_lease_keeps_it_by_its_heartbeat_and_leaves_messages_to_an_idle_worker(
    celery_worker: Starter, sweeper: Starter, tmp_path: Path
) -> None:
    """One that it took beforehand would wait for the end of its step, beside a worker with nothing to do."""
    (held := tmp_path / "ledger.held").touch()
    sweeper(env=QUICK)
    for name in ("one", "two"):
        celery_worker("-c", "1", "--name", name, env=QUICK)
    long = make_run("grower", steps=1, ledger=str(tmp_path / "ledger"))
    becomes(long, "running")
    ends = long.lease_until

    def outlived() -> bool:
        long.refresh_from_db()
        return long.lease_until is not None and ends is not None and long.lease_until - ends > timedelta(seconds=LEASE)

    for run in [make_run("hopper") for _ in range(4)]:
        becomes(run, "completed")
    until(outlived, what="the step has gone on for longer than its lease")
    assert long.status == "running"
    held.unlink()
    becomes(long, "completed")
    assert Event.objects.filter(run_id=long.pk, kind="run.running").count() == 1


def test_a_broker_that_is_down_loses_no_run() -> None:
    env = {"REDIS_URL": f"redis://127.0.0.1:{services.free_port()}/0"}
    team = make_run("hopper").team
    done = services.run(*services.manage("run_agent", "hopper", "--input", "{}", "--team", team.name), env=env)
    assert done.returncode == 0, done.stderr
    assert "doorbell.lost" in done.stderr + done.stdout
    assert Run.objects.filter(team=team).order_by("-pk").values_list("status", flat=True)[0] == "queued"


@pytest.fixture
def held() -> Iterator[psycopg.Connection]:
    """A connection that holds up the COMMIT of the second step, until it gives the lock back."""
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"], autocommit=True) as owner:
        owner.execute(SLOW_COMMIT)
        try:
            owner.execute(f"SELECT pg_advisory_lock({LOCK})")
            yield owner
        finally:
            owner.execute("SELECT pg_advisory_unlock_all()")
            owner.execute(GONE)


@pytest.mark.parametrize("signals", first_alone([[signal.SIGTERM, signal.SIGQUIT], [signal.SIGTERM] * 3]))
def test_a_step_whose_commit_is_under_way_lands_once_however_often_the_worker_is_told_to_end(
    signals: list[signal.Signals], held: psycopg.Connection, celery_worker: Starter, ledger: Path
) -> None:
    worker = celery_worker("-c", "1", env=QUICK)
    run = make_run("grower", steps=4, pause=0.01, ledger=str(ledger))

    def waiting() -> bool:
        return held.execute(IN_COMMIT.encode()).fetchone() == (1,)

    until(waiting, what="its second step is in COMMIT")
    for each in signals:
        os.kill(worker.pid, each)
    held.execute("SELECT pg_advisory_unlock_all()")
    until(lambda: not worker.alive, what="the worker has ended")
    run.refresh_from_db()
    assert go_on(run).status == "completed"
    grown = ledger.read_text().splitlines()  # the step after it may have begun before the worker was ended
    assert (grown.count("grow 1"), sorted(set(grown))) == (1, [f"grow {number}" for number in range(4)])
    assert state(run)["log"] == [0, 1, 2, 3]
    assert Checkpoint.objects.filter(run=run).count() == 5
