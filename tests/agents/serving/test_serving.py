"""Whether workers serve an agent: announced in PostgreSQL, and told where a run waits for one."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from datetime import timedelta

import psutil
import pytest
from django.db.models import F
from django.db.models.functions import Now

from agents.models import Worker
from agents.models.worker import SILENT
from agents.serving import missing_workers
from checkpoints.models import Run
from tests.agents.serving.test_deafness import IMPATIENT
from tests.conftest import Starter
from tests.factories import bob, make_team
from tests.factories import make_run as make_stored
from tests.factories.driven_runs import make_run
from tests.harness import services
from tests.harness.examples import first_alone
from tests.harness.services import run
from tests.harness.session import Session
from tests.harness.signed_in_clients import signed_in
from tests.harness.waiting import until

GONE = SILENT + timedelta(seconds=1)


@pytest.fixture(autouse=True)
def nobody() -> None:
    """Forget the workers of other tests."""
    Worker.objects.all().delete()


def heard(run: Run, **ago: float) -> None:
    """A worker of the run's plan that was heard of so long ago."""
    Worker.objects.beat("box:81", [run.plan_id])
    Worker.objects.update(heard_at=Now() - timedelta(**ago))


def page(run: Run) -> str:
    text: str = signed_in(bob(run.team)).get(f"/runs/{run.pk}/").content.decode()
    return text


def test_a_worker_says_that_it_is_there_and_when_it_stops(celery_worker: Starter) -> None:
    worker = celery_worker("-c", "1")
    run = make_run("hopper")
    until(lambda: Worker.objects.filter(plans__contains=[run.plan_id]).count() == 1, what="its process is there")
    # One that is told to stop while it begins has nobody to say so.
    until(lambda: Run.objects.get(pk=run.pk).status == "completed", what="it works")
    assert missing_workers.of_plans([run.plan_id])[run.plan_id].has_worker
    worker.process.terminate()
    until(Worker.objects.filter(stopped=True).exists, what="it said that it stops")  # and did not only fall silent
    service = missing_workers.of_plans([run.plan_id])[run.plan_id]
    assert (service.has_worker, service.heard is not None) == (False, True)


def test_a_worker_says_so_while_redis_is_down(celery_worker: Starter) -> None:
    """Its doorbells are lost then; that it is there is still true."""
    env = {"REDIS_URL": f"redis://127.0.0.1:{services.free_port()}/0"}
    celery_worker("-c", "1", env=env, ready=False)
    until(lambda: Worker.objects.exists(), what="it is there")


@pytest.mark.parametrize("ready", first_alone([True, False]), ids=["", "before Redis is there"])
def test_a_worker_whose_parent_stands_still_is_not_there_until_it_goes_on(celery_worker: Starter, ready: bool) -> None:
    """Its processes take nothing then, and went on saying that they were there."""
    env = IMPATIENT if ready else IMPATIENT | {"REDIS_URL": f"redis://127.0.0.1:{services.free_port()}/0"}
    silent = Worker.objects.filter(heard_at__lt=Now() - timedelta(seconds=3))
    worker = celery_worker("-c", "1", env=env, ready=ready)
    until(Worker.objects.exists, what="its process is there")
    os.kill(worker.pid, signal.SIGSTOP)
    try:
        worker.says("worker.parent_stands_still")
        until(silent.exists, what=f"it is not heard of; the worker said:\n{worker.log}")
        assert worker.log.count("worker.parent_stands_still") == 1
    finally:
        os.kill(worker.pid, signal.SIGCONT)
    until(lambda: not silent.exists(), what="it is heard of again")


def test_one_that_was_killed_is_told_as_gone_since_it_was_heard_of() -> None:
    run = make_stored()
    heard(run, seconds=GONE.total_seconds())
    service = missing_workers.of_plans([run.plan_id])[run.plan_id]
    assert not service.has_worker
    assert service.heard is not None
    assert missing_workers.describe_idle(run).startswith(
        f"no worker has served {run.plan.agent} {run.plan.version} since "
    )
    assert "manage.py worker" in missing_workers.describe_idle(run)


def test_a_run_that_is_due_although_a_worker_is_there_says_what_that_may_be() -> None:
    run = make_stored()
    heard(run, seconds=0)
    assert missing_workers.describe_idle(run) == ""
    Run.objects.filter(pk=run.pk).update(created_at=F("created_at") - timedelta(minutes=1))
    assert "Redis does not answer" in missing_workers.describe_idle(run)


@pytest.mark.parametrize("columns", [{"status": "waiting"}, {"wake_at": Now() + timedelta(minutes=5)}])
def test_a_run_that_waits_for_something_else_misses_no_worker(columns: dict[str, object]) -> None:
    run = make_stored()
    Run.objects.filter(pk=run.pk).update(**columns)
    assert missing_workers.describe_idle(run) == ""


def test_the_runs_page_says_that_nobody_serves_it_and_since_when() -> None:
    """It said "Queued", for ever."""
    run = make_stored(team=make_team())
    named = f"{run.plan.agent} {run.plan.version}"
    assert f"No worker has ever served {named}." in page(run)
    heard(run, minutes=12)
    assert f"No worker has served {named} since <time" in page(run)
    assert "No worker has ever" not in page(run)
    heard(run, seconds=0)
    assert 'id="unserved"' not in page(run)
    heard(run, minutes=12)
    Run.objects.filter(pk=run.pk).update(status="completed", finished_at=Now())
    assert 'id="unserved"' not in page(run)


def test_run_agent_says_that_nobody_serves_it_and_goes_on_once_somebody_does(
    celery_worker: Starter, start_service: Starter
) -> None:
    """`--wait` stood still without a word."""
    team = make_run("hopper").team
    waits = start_service(
        "run_agent", services.manage("run_agent", "hopper", "--input", "{}", "--team", team.name, "--wait"), None
    )
    waits.says("waits: no worker has ever served hopper 1. Start a worker: manage.py worker")
    celery_worker("-c", "1")
    waits.says("is completed")


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


# Each collection runs Python code, at which threads take turns: as finalizers and weak references do, only sure.
FIRST_REQUESTS = """
import gc, json, sys, threading
import django
django.setup()
from agents.definition import registry

def collecting(phase, info):
    for _ in range(50):
        pass

found, together = [], threading.Barrier(8)

def ask():
    together.wait()
    found.append(registry.declared())

threads = [threading.Thread(target=ask) for _ in range(8)]
gc.callbacks.append(collecting)
gc.set_threshold(300, 5, 5)
sys.setswitchinterval(1e-6)
for each in threads:
    each.start()
for each in threads:
    each.join()
sys.setswitchinterval(0.005)
gc.callbacks.clear()
told = [{"agents": sorted(map(list, each.agents)), "faults": each.faults} for each in found]
print(json.dumps({"told": told, "readings": len(set(map(id, found)))}))
"""


def test_threads_that_ask_for_the_agents_at_once_get_all_of_them_and_read_them_once() -> None:
    """`ast.parse` fails in a thread that the garbage collector leaves for another one that parses too.

    The agent at hand was then called unusable, or a new web process's first request was answered with 500.
    """
    wish = {"DJANGO_SETTINGS_MODULE": "config.settings", "HOLDPOINT_AGENTS": "agents.examples.refunds"}
    done = run(sys.executable, "-c", FIRST_REQUESTS, env=wish)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert [each["faults"] for each in said["told"]] == [[]] * 8
    assert [[name for name, _ in each["agents"]] for each in said["told"]] == [["refunds"]] * 8
    assert said["readings"] == 1
