"""Real Celery workers and a real sweeper, against lost messages, lost workers and lost leases."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from agents.definition.registered import queue_of
from agents.ringing.ring_pauses import LONGEST
from agents.tasks import advance as doorbell
from checkpoints.models import Checkpoint, Event, Run
from tests.factories.driven_runs import decide, effects, make_run
from tests.harness import services
from tests.harness.waiting import until

LEASE = 2.0  # renewed every third of it, on a machine that may be loaded
QUICK = {"HOLDPOINT_LEASE": str(LEASE), "HOLDPOINT_TIME_SLICE": "5"}
Starter = Callable[..., services.Service]


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """The external ledger of a test's effects."""
    return tmp_path / "ledger"


def becomes(run: Run, status: str) -> Run:
    """Wait until the run has this status; the run as it is then."""

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
    celery_worker: Starter, sweeper: Starter
) -> None:
    """One that it took beforehand would wait for the end of its step, beside a worker with nothing to do."""
    sweeper(env=QUICK)
    for name in ("one", "two"):
        celery_worker("-c", "1", "--name", name, env=QUICK)
    long = make_run("grower", steps=1, pause=2 * LEASE)
    becomes(long, "running")
    for run in [make_run("hopper") for _ in range(4)]:
        becomes(run, "completed")
    long.refresh_from_db()
    assert long.status == "running"
    becomes(long, "completed")
    assert Event.objects.filter(run_id=long.pk, kind="run.running").count() == 1


def test_a_broker_that_is_down_loses_no_run() -> None:
    env = {"REDIS_URL": f"redis://127.0.0.1:{services.free_port()}/0"}
    team = make_run("hopper").team
    done = services.run(*services.manage("run_agent", "hopper", "--input", "{}", "--team", team.name), env=env)
    assert done.returncode == 0, done.stderr
    assert "doorbell.lost" in done.stderr + done.stdout
    assert Run.objects.filter(team=team).order_by("-pk").values_list("status", flat=True)[0] == "queued"
