"""A worker that takes no message although it could is named and ended; one that is busy or lost Redis is not."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import redis
from django.test import Client

from agents.models import Worker
from agents.serving import announcing
from agents.serving.announcing import Hearing
from checkpoints.models import Event, Run
from config import messages
from tests.conftest import Starter
from tests.factories.driven_runs import make_run, state
from tests.harness import services
from tests.harness.session import Session
from tests.harness.waiting import until

QUEUE = "agent.hopper.1"
PATIENCE = 3.0  # seconds, of the module in the next line
IMPATIENT = {"HOLDPOINT_AGENTS": "tests.factories.sample_agents,tests.agents.serving.impatient_registry"}


def passed(seconds: float) -> None:
    """Wait until so much time has passed."""
    began = time.monotonic()
    until(lambda: time.monotonic() > began + seconds, what=f"{seconds} s have passed")


def only_process(worker: services.Service) -> psutil.Process:
    """Return the process that takes the worker's runs, once it has begun: it dies with its parent only from then on."""
    (process,) = psutil.Process(worker.pid).children()
    until(lambda: Worker.objects.there().filter(name__endswith=f":{process.pid}"), what="the process announced itself")
    return process


def test_what_waits_in_vain_is_counted_from_the_last_message_that_was_begun() -> None:
    hearing = Hearing(since=100.0, looked=190.0)
    assert hearing.deaf_for(0, could=False, now=200.0) == 0  # nothing waited, or nobody was free
    assert hearing.deaf_for(0, could=True, now=210.0) == 10
    assert hearing.deaf_for(1, could=True, now=220.0) == 0
    assert hearing.deaf_for(1, could=True, now=235.0) == 15
    assert hearing.deaf_for(1, could=True, now=245.0) == 25
    assert hearing.deaf_for(1, could=False, now=246.0) == 0


def test_a_time_in_which_nobody_looked_is_not_counted() -> None:
    hearing = Hearing(since=100.0, looked=100.0)
    assert hearing.deaf_for(0, could=True, now=105.0) == 5
    assert hearing.deaf_for(0, could=True, now=900.0) == 0
    assert hearing.deaf_for(0, could=True, now=905.0) == 5


@pytest.mark.long  # of the time in which nobody looked, see above
def test_a_worker_that_was_paused_with_its_machine_goes_on(celery_worker: Starter, server: redis.Redis) -> None:
    """The time of the pause was counted, and the worker ended with the first look after it."""
    worker = celery_worker("-c", "1", env=IMPATIENT)
    process = only_process(worker)
    process.suspend()
    runs = [make_run("hopper") for _ in range(2)]
    until(lambda: server.llen(QUEUE) == 1, what="the first message was taken, the second waits")
    worker.pause()
    passed(1.5 * PATIENCE)
    os.kill(worker.pid, signal.SIGCONT)
    passed(PATIENCE / 3)  # in which it looks
    process.resume()
    until(lambda: all(Run.objects.get(pk=run.pk).status == "completed" for run in runs), what="it takes what waited")
    assert worker.alive
    assert "worker.deaf" not in worker.log


def test_a_worker_whose_process_hangs_before_it_begins_is_ended_and_named(
    celery_worker: Starter, server: redis.Redis, redis_url: str
) -> None:
    """It looked alive, and what it had taken and what came after it stood still."""
    worker = celery_worker("-c", "1", env=IMPATIENT)
    process = only_process(worker)
    process.send_signal(signal.SIGSTOP)
    make_run("hopper")
    second = make_run("hopper")
    until(lambda: server.llen(QUEUE) == 1, what="the first message was taken, the second waits")
    assert worker.process.wait(60) == announcing.EXIT_CODE, worker.log
    assert "worker.deaf" in worker.log
    until(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE, what="its process is gone too")

    messages.record_canary(redis_url)
    answer = Client().get("/readyz")
    assert answer.status_code == 503
    assert "took nothing for" in answer.json()["parts"]["worker"]

    celery_worker("-c", "1")
    until(lambda: Run.objects.get(pk=second.pk).status == "completed", what="another worker takes what waited")


@pytest.mark.long  # of where nobody is free, see above
def test_a_worker_that_is_busy_or_has_nothing_to_take_is_left_alone(
    celery_worker: Starter, server: redis.Redis
) -> None:
    worker = celery_worker("-c", "1", env=IMPATIENT)
    long = make_run("grower", steps=1, pause=8.0)
    until(lambda: Run.objects.get(pk=long.pk).status == "running", what="the long step has begun")
    after = make_run("hopper")
    until(lambda: Run.objects.get(pk=after.pk).status == "completed", what="the worker takes it when it is free")
    assert worker.alive
    assert "worker.deaf" not in worker.log


@pytest.fixture(autouse=True)
def nothing_due() -> Iterator[None]:
    """No older run is due, and no worker of another test is known."""
    Run.objects.live().update(status="cancelled")
    Worker.objects.all().delete()
    yield
    Run.objects.live().update(status="cancelled")


def kill(servers: Session) -> None:
    """Kill Redis, as the kernel would that is out of memory."""
    process = servers.redis.process
    assert process is not None
    process.kill()
    process.wait()
    servers.redis.stop()


def completes(run: Run, why: str) -> None:
    def there() -> bool:
        run.refresh_from_db()
        return run.status == "completed"

    until(there, what=f"{run} is done: {why}")


def test_a_worker_whose_steps_outlast_a_restart_of_redis_takes_the_next_run(
    celery_worker: Starter, servers: Session, tmp_path: Path
) -> None:
    """It counted both messages as in hand for ever, so it took no other, and looked alive."""
    ledger = tmp_path / "ledger"
    worker = celery_worker("-c", "2")
    long = [make_run("grower", steps=1, pause=3.0, ledger=str(ledger)) for _ in range(2)]
    until(lambda: ledger.exists() and len(ledger.read_text().splitlines()) == 2, what="both steps have begun")
    kill(servers)
    try:
        for run in long:
            completes(run, "that needs no Redis")
        worker.says("ConnectionError|Connection to broker lost|Cannot connect")
    finally:
        servers.redis.start(servers.log("redis"))
    third = make_run("hopper")
    completes(third, "the worker takes it")
    assert worker.alive
    for run in long:
        assert state(run)["log"] == [0]
        assert Event.objects.filter(run_id=run.pk, kind="run.running").count() == 1
