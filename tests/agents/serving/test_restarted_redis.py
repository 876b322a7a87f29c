"""A worker that was busy while Redis was killed and came back: it takes the next run, and does the others once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agents.models import Worker
from checkpoints.models import Event, Run
from tests.factories.driven_runs import make_run, state
from tests.harness import services
from tests.harness.session import Session
from tests.harness.waiting import until

Starter = Callable[..., services.Service]


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
