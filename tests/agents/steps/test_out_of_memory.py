"""A step that takes all the memory: its run ends at a gate, and its worker goes on with other runs."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from checkpoints.models import Event, Run
from tests.factories.driven_runs import failures, make_run, open_gate, state
from tests.harness import services
from tests.harness.known_agents import knowing_only
from tests.harness.waiting import until

from .hoarding_agents import MOST

QUICK = {"HOLDPOINT_LEASE": "2", "HOLDPOINT_TIME_SLICE": "5"}
Starter = Callable[..., services.Service]


@pytest.fixture(autouse=True)
def own_agents(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with knowing_only("tests.agents.steps.hoarding_agents", settings, monkeypatch):
        yield


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """A line for each attempt."""
    return tmp_path / "ledger"


def becomes(run: Run, status: str) -> None:
    def there() -> bool:
        run.refresh_from_db()
        return run.status == status

    until(there, what=f"{run} is {status}")


def kills_the_largest(worker: services.Service) -> bool:
    """Do what the kernel does where a machine's memory is used up; False where it is not."""
    for process in psutil.Process(worker.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if process.memory_info().rss > MOST / 2:
                process.kill()
                process.wait()
                return True
    return False


def began(ledger: Path) -> int:
    return len(ledger.read_text().splitlines())


@pytest.mark.long
def test_a_step_for_which_the_kernel_kills_its_process_is_quarantined(
    celery_worker: Starter, sweeper: Starter, ledger: Path
) -> None:
    sweeper(env=QUICK)
    worker = celery_worker("-c", "1", env=QUICK)
    run = make_run("hoarder", ledger=str(ledger))
    for _ in range(2):
        until(lambda: kills_the_largest(worker), what="the memory is used up")
    becomes(run, "waiting")
    assert began(ledger) == 2
    assert [failure.attempt for failure in failures(run)] == [3]
    assert "2 workers died" in failures(run)[0].error
    goes_on(run, worker, ledger)


def test_a_step_that_gets_no_more_memory_fails_and_is_quarantined(
    celery_worker: Starter, sweeper: Starter, ledger: Path
) -> None:
    sweeper(env=QUICK)
    worker = celery_worker("-c", "1", env=QUICK)
    for process in psutil.Process(worker.pid).children(recursive=True):
        most = process.memory_info().vms + MOST // 2
        resource.prlimit(process.pid, resource.RLIMIT_AS, (most, most))
    run = make_run("hoarder", ledger=str(ledger))
    becomes(run, "waiting")
    assert began(ledger) == 2
    assert [failure.attempt for failure in failures(run)] == [1, 2]
    assert "MemoryError" in failures(run)[0].error
    assert Event.objects.filter(run_id=run.pk, kind="worker.fenced").count() == 0
    goes_on(run, worker, ledger)


def goes_on(run: Run, worker: services.Service, ledger: Path) -> None:
    """The run asks a person, and its worker is there for another."""
    assert open_gate(run).kind == "recovery"
    other = make_run("hoarder", ledger=str(ledger), much=False)
    becomes(other, "completed")
    assert state(other)["read"] == 0
    assert worker.alive
