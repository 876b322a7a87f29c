"""Runs come by their priority, none is kept waiting for ever, and workers serve the queues that they are told."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import redis
from django.db.models.functions import Now

from agents.definition import registry
from agents.models import Worker
from agents.ringing import doorbell
from agents.runs.start import start_run
from agents.serving import sweeper as sweeping
from agents.serving.sweeper import Sweeper
from checkpoints.actors import SYSTEM
from checkpoints.models import Event, Run
from tests.conftest import Starter
from tests.factories import make_team
from tests.factories.driven_runs import advance, advance_to_rest, decide, make_run, state
from tests.harness import services
from tests.harness.waiting import PATIENCE, until

QUEUE = "agent.hopper.1"


def start(agent: str, priority: int | None = None, **input: Any) -> Run:
    return start_run(agent, input, by=SYSTEM, team=make_team(), priority=priority)


def ended(runs: list[Run]) -> bool:
    return not Run.objects.filter(pk__in=[run.pk for run in runs]).live().exists()


def in_order(runs: list[Run]) -> list[int]:
    """The runs as they were first taken."""
    taken = Event.objects.filter(kind="run.running", run_id__in=[run.pk for run in runs]).order_by("pk")
    return list(dict.fromkeys(run or 0 for run in taken.values_list("run_id", flat=True)))


def lengths(server: redis.Redis, queue: str) -> list[int]:
    """The messages in the urgent list of the queue, the plain one, and that of those that can wait."""
    found: list[Any] = [server.llen(doorbell.key(queue, step)) for step in doorbell.STEPS]
    return found


def test_urgent_runs_are_taken_first_and_those_that_can_wait_last(celery_worker: Starter, server: redis.Redis) -> None:
    given = [9, None, 5, 0, 7, 3]
    runs = [start("hopper", priority) for priority in given]
    assert lengths(server, QUEUE) == [2, 2, 2]
    assert server.llen(QUEUE) == 2  # which an earlier release's workers read
    celery_worker("-c", "1")
    until(lambda: ended(runs), what="all have ended")
    assert in_order(runs) == [runs[number].pk for number in (3, 5, 1, 2, 0, 4)]


def test_the_sweeper_rings_by_priority(server: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "AT_ONCE", 2)
    for priority in (8, 5, 5, 0, 1):
        start("hopper", priority)
    server.flushall()
    Sweeper().ring_due()
    assert lengths(server, QUEUE) == [2, 0, 0]


def test_a_run_keeps_its_priority_through_a_decision_a_fork_and_the_sweeper(server: redis.Redis) -> None:
    queue = "agent.payer.1"
    run = advance_to_rest(start("payer", 1))
    server.flushall()
    decide(run)
    assert lengths(server, queue) == [1, 0, 0]
    server.flushall()
    Sweeper().ring_due()
    assert lengths(server, queue) == [1, 0, 0]
    assert Run.objects.get(pk=run.pk).priority == 1


def test_a_run_that_urgent_ones_kept_waiting_for_long_is_rung_for_as_urgent(server: redis.Redis) -> None:
    waits, sweeper = start("hopper", 8), Sweeper()
    Run.objects.filter(pk=waits.pk).update(created_at=Now() - timedelta(minutes=6))
    server.flushall()
    assert sweeper.ring_for_those_kept_waiting() == 0  # there is none that is more urgent
    start("grower", 0)
    server.flushall()
    assert sweeper.ring_for_those_kept_waiting() == 0  # not looked for each second
    sweeper = Sweeper()
    assert sweeper.ring_for_those_kept_waiting() == 1
    assert lengths(server, QUEUE) == [1, 0, 0]
    sweeper.looked_for_kept_waiting -= sweeping.KEPT_WAITING_EVERY
    assert sweeper.ring_for_those_kept_waiting() == 0  # in its pause
    Run.objects.filter(pk=waits.pk).update(created_at=Now() - timedelta(minutes=4))
    assert Sweeper().ring_for_those_kept_waiting() == 0


def test_an_endless_stream_of_urgent_runs_keeps_no_run_waiting_for_ever(
    celery_worker: Starter, sweeper: Starter, server: redis.Redis
) -> None:
    sliced = {"HOLDPOINT_TIME_SLICE": "0.2"}
    endless = [start("grower", 0, steps=100_000, pause=0.01) for _ in range(3)]
    waits = start("hopper", 9)
    Run.objects.filter(pk=waits.pk).update(created_at=Now() - timedelta(minutes=6))
    celery_worker("-c", "1", env=sliced)
    sweeper(env=sliced)
    until(lambda: ended([waits]), what="the run that can wait has ended")
    assert Run.objects.filter(pk__in=[run.pk for run in endless]).live().count() == 3


@pytest.mark.long
@pytest.mark.parametrize(("sweeps", "favoured"), [(False, 0), (True, 10)])
def test_a_thousand_busy_runs_on_two_workers_go_on_side_by_side(
    sweeps: bool, favoured: int, celery_worker: Starter, sweeper: Starter, server: redis.Redis
) -> None:
    """No run gets two slices more than another that waits; but a sweeper may ring once too often for a few.

    Were one of them kept waiting, all others would be ahead of it.
    """
    sliced = {"HOLDPOINT_TIME_SLICE": "0"}
    runs = [make_run("grower", steps=4) for _ in range(1000)]
    for name in ("one", "two"):
        celery_worker("-c", "1", "--name", name, env=sliced)
    if sweeps:
        sweeper(env=sliced)
    until(lambda: ended(runs), within=20 * PATIENCE, what="all have ended")
    taken = Event.objects.filter(run_id__in=[run.pk for run in runs], kind__in=("run.running", "run.completed"))
    slices, ahead = dict.fromkeys((run.pk for run in runs), 0), set[int]()
    for kind, run in taken.order_by("pk").values_list("kind", "run_id"):
        if kind == "run.completed":
            del slices[run or 0]
            continue
        slices[run or 0] += 1
        if slices[run or 0] - min(slices.values()) > 2:
            ahead.add(run or 0)
    assert not slices
    assert len(ahead) <= favoured


def test_a_worker_serves_the_queues_that_it_is_told(
    celery_worker: Starter, server: redis.Redis, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    agents = ["tests.factories.sample_agents", "tests.agents.serving.queued_agents"]
    settings.HOLDPOINT_AGENTS = agents
    monkeypatch.setenv("HOLDPOINT_AGENTS", ",".join(agents))
    registry.forget()
    heavy, light = start("heavy"), start("hopper")
    before = set(Worker.objects.values_list("name", flat=True))  # of workers that other tests killed
    worker = celery_worker("-c", "1", "--queue", "gpu")
    until(lambda: ended([heavy]), what="the run of the agent with this queue has ended")
    assert state(heavy)["done"]
    assert lengths(server, QUEUE) == [0, 1, 0]
    assert not ended([light])
    mine = Worker.objects.exclude(name__in=before)
    assert [each.plans for each in until(lambda: list(mine), what="it announces itself")] == [[heavy.plan_id]]
    assert worker.stop()
    refused = services.run(*services.manage("worker", "--queue", "none"))
    assert "No agent here says the queue none; known: default, gpu." in refused.stderr


def test_children_have_the_priority_of_the_run_that_started_them(
    settings: Any, monkeypatch: pytest.MonkeyPatch, server: redis.Redis
) -> None:
    settings.HOLDPOINT_AGENTS = ["tests.agents.serving.queued_agents"]
    registry.forget()
    parent = advance(start("queued_parent", 2))
    child = Run.objects.get(parent=parent)
    assert child.priority == 2
    server.flushall()
    advance_to_rest(child)
    assert lengths(server, "agent.queued_parent.1") == [1, 0, 0]  # its end rings for the parent
