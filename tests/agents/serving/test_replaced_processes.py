"""A worker's process that is killed while PostgreSQL is away: the next one waits for it, and works when it is back."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

import psutil
import pytest

from agents.models import Worker
from checkpoints.models import Run
from tests.factories.driven_runs import make_run
from tests.harness import services
from tests.harness.session import Session
from tests.harness.waiting import until

Starter = Callable[..., services.Service]


@pytest.fixture
def postmaster(servers: Session) -> Iterator[psutil.Process]:
    """The process that lets new connections in. It goes on in the end."""
    Run.objects.live().update(status="cancelled")
    Worker.objects.all().delete()
    assert servers.postgres.process is not None
    process = psutil.Process(servers.postgres.process.pid)
    yield process
    process.send_signal(signal.SIGCONT)


@pytest.mark.long
def test_a_process_that_begins_while_postgresql_is_away_is_not_killed_for_waiting(
    celery_worker: Starter, postmaster: psutil.Process
) -> None:
    """It read the plans before it said that it was up: every five seconds it was killed and another began."""
    worker = celery_worker("-c", "1")
    until(Worker.objects.exists, what="its process is there")
    Worker.objects.all().delete()
    postmaster.send_signal(signal.SIGSTOP)
    parent = psutil.Process(worker.pid)
    (first,) = parent.children()
    first.kill()
    until(lambda: [each for each in parent.children() if each != first], what="another process is there")
    (second,) = (each for each in parent.children() if each != first)
    worker.says("worker.not_announced")  # it has waited for PostgreSQL for longer than Celery waits for a process
    postmaster.send_signal(signal.SIGCONT)

    run = make_run("hopper")
    until(lambda: Run.objects.get(pk=run.pk).status == "completed", what=f"it works; the worker said:\n{worker.log}")
    until(Worker.objects.exists, what="it says that it is there")
    assert parent.children() == [second]
    assert "Timed out waiting for UP message" not in worker.log
