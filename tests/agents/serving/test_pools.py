"""Real Celery workers with each pool: whole runs, many at once, time limits, and workers that are killed."""

from __future__ import annotations

import select
import threading
from pathlib import Path
from typing import Any

import pytest
from kombu.asynchronous import Hub

from agents.models import Worker
from checkpoints.models import Event, Run
from config.messages import ThreadPool
from tests.agents.serving.pool_agents import written
from tests.conftest import Starter
from tests.factories.driven_runs import decide, effects, failures, make_run, state, trail
from tests.harness import services
from tests.harness.known_agents import knowing_only
from tests.harness.waiting import PATIENCE, until

QUICK = {"HOLDPOINT_LEASE": "2", "HOLDPOINT_TIME_SLICE": "5"}
AGENTS = "tests.agents.serving.pool_agents"


@pytest.fixture
def pool_agents(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    with knowing_only(AGENTS, settings, monkeypatch):
        yield


def becomes(run: Run, status: str) -> None:
    def there() -> bool:
        run.refresh_from_db()
        return run.status == status

    until(there, what=f"{run} is {status}")


@pytest.mark.parametrize("pool", ["prefork", pytest.param("threads", marks=pytest.mark.long)])
def test_a_run_goes_through_steps_a_gate_and_effects_though_workers_are_killed(
    celery_worker: Starter, sweeper: Starter, tmp_path: Path, pool: str
) -> None:
    """The first worker dies in a step, the second in an effect; a third takes the run to its end."""
    ledger, sweeping = tmp_path / "ledger", QUICK
    sweeper(env=sweeping)

    def doomed(place: str) -> services.Service:
        crash = {"HOLDPOINT_CRASH": f"{place}:kill:1:{tmp_path / place}"}
        return celery_worker("-c", "1", "--pool", pool, "--name", place.partition("@")[0], env=QUICK | crash)

    def dies(worker: services.Service, place: str) -> None:
        until((tmp_path / place).exists, what=f"{place} is reached")
        worker.kill()

    first = doomed("after_step@propose")
    run = make_run("payer", ledger=str(ledger))
    dies(first, "after_step@propose")
    second = doomed("after_effect@pay")
    becomes(run, "waiting")
    decide(run)
    dies(second, "after_effect@pay")
    celery_worker("-c", "2", "--pool", pool, "--name", "last", env=QUICK)
    becomes(run, "completed")
    lines = [line.split()[0] for line in ledger.read_text().splitlines()]
    assert len({line for line in ledger.read_text().splitlines() if line.startswith("pay")}) == 1
    assert lines[-1] == "mail"
    assert lines.count("mail") == 1
    assert [row.attempts for row in effects(run, "pay")] == [2]
    assert [step for kind, step in trail(run) if kind == "step"] == ["propose", "read", "pay", "mail"]


@pytest.mark.parametrize("wanted", [24, pytest.param(200, marks=pytest.mark.long)])
def test_many_runs_are_at_work_at_once_each_with_its_own_connection(
    celery_worker: Starter, pool_agents: None, tmp_path: Path, wanted: int
) -> None:
    """A pool of connections has 20 by default."""
    worker = celery_worker("-c", str(wanted), "--pool", "threads")
    runs = [make_run("meeter", file=str(tmp_path / "there"), wanted=wanted) for _ in range(wanted)]
    for run in runs:
        becomes(run, "completed")
    sessions = {state(run)["session"] for run in runs}
    assert len(sessions) == wanted
    later = [make_run("meeter", file=str(tmp_path / f"later {number}"), wanted=1) for number in range(2 * wanted)]
    for run in later:  # the connections went back
        becomes(run, "completed")
    assert not Event.objects.filter(run_id__in=[run.pk for run in [*runs, *later]], kind="step.failed").exists()
    assert worker.stop()
    assert not Worker.objects.there().filter(name__endswith=f":{worker.pid}").exists()


@pytest.mark.parametrize("pool", ["prefork", pytest.param("threads", marks=pytest.mark.long)])
def test_a_step_that_waits_past_its_limit_is_interrupted_and_tried_again(
    celery_worker: Starter, sweeper: Starter, pool_agents: None, tmp_path: Path, pool: str
) -> None:
    worker = celery_worker("-c", "2", "--pool", pool, env=QUICK)
    sweeper(env=QUICK)
    run = make_run("overrunner", file=str(tmp_path / "began"), how="waits")
    becomes(run, "completed")
    assert state(run)["said"] == "went on"
    (failure,) = failures(run)
    assert "ran past its time limit of 1 s" in failure.error
    assert worker.alive


@pytest.mark.long
def test_a_thread_that_is_stuck_costs_its_worker_no_other_run(
    celery_worker: Starter, sweeper: Starter, pool_agents: None, tmp_path: Path
) -> None:
    """The stuck run is taken over, while another is at work beside it and completes."""
    there = str(tmp_path / "there")
    worker = celery_worker("-c", "2", "--pool", "threads", env=QUICK)
    beside = make_run("meeter", file=there, wanted=2)
    until(lambda: len(written(there)) == 1, what="the other run is at work")
    stuck = make_run("overrunner", file=str(tmp_path / "began"), how="blocks")
    worker.says("step.overran")
    sweeper(env=QUICK)
    celery_worker("-c", "1", "--name", "other", env=QUICK)
    becomes(stuck, "completed")
    assert state(stuck)["said"] == "went on"
    assert worker.alive
    Path(there).write_text("there\nnow\n")
    becomes(beside, "completed")
    assert Event.objects.filter(run_id=beside.pk, kind="run.running").count() == 1
    until(lambda: not worker.alive, what="the process ends once nothing else is at work there")


@pytest.mark.long
def test_a_worker_of_one_takes_one_run_after_the_other(celery_worker: Starter) -> None:
    celery_worker("-c", "1", "--pool", "threads", env=QUICK)
    for run in [make_run("hopper") for _ in range(10)]:
        becomes(run, "completed")


def test_a_thread_that_is_free_wakes_the_workers_loop() -> None:
    """The loop took the next message when it went round by itself, after a second."""
    pool, going, loop = ThreadPool(1), threading.Event(), Hub()
    pool.register_with_event_loop(loop)
    pool.on_apply(going.wait, (), {})
    assert not select.select([pool.freed], [], [], 0)[0]
    going.set()
    assert select.select([pool.freed], [], [], PATIENCE)[0]
    assert pool.freed in loop.readers
    pool.stop()
    loop.close()
