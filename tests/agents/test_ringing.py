"""However long workers are away and however often sweepers start anew, no queue grows beyond what is due in it."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
import redis
from django.db.models.functions import Now

from agents.ringing import queues
from agents.sweeper import Sweeper
from agents.tasks import advance
from checkpoints.actors import SYSTEM
from checkpoints.models import Run, Verification
from tests.factories import make_team
from tests.harness import services
from tests.harness.waiting import until

from .driving import make_run

Starter = Callable[..., services.Service]
QUEUE = "agent.hopper.1"
DUE, TIMES = 170, 15


@pytest.fixture
def server(redis_url: str) -> Iterator[redis.Redis]:
    """This process's Redis, empty, with no older run due."""
    Run.objects.live().update(status="cancelled")
    client = redis.Redis.from_url(redis_url)
    client.flushall()
    yield client
    Run.objects.live().update(status="cancelled")
    client.flushall()


def test_sweepers_that_start_anew_ring_for_no_run_whose_message_waits(server: redis.Redis) -> None:
    """2,725 messages waited for 170 runs, and a new run behind 1,801 of them."""
    team = make_team()
    for _ in range(DUE):
        make_run("hopper", team=team)
    for _ in range(TIMES):
        Sweeper().sweep_once()
    assert queues.waiting([QUEUE, "agent.nobody.1"]) == {QUEUE: DUE, "agent.nobody.1": 0}
    server.flushall()
    for _ in range(TIMES):
        Sweeper().sweep_once()
    assert server.llen(QUEUE) == DUE


def test_a_run_whose_worker_is_gone_comes_before_those_that_queue(server: redis.Redis) -> None:
    """No message speaks of it, while those of the others may wait."""
    queued, lost = make_run("hopper"), make_run("hopper")
    Run.objects.filter(pk=lost.pk).update(status="running", token=1, lease_until=Now() - timedelta(seconds=1))
    server.delete(QUEUE)
    advance.apply_async(args=(queued.pk,), queue=QUEUE)
    assert Sweeper().ring_due() == 1
    body = json.loads(server.lindex(QUEUE, 0))["body"]  # type: ignore[arg-type]
    assert json.loads(base64.b64decode(body))[0] == [lost.pk]


def test_a_verification_is_rung_for_once_and_again_after_a_pause(server: redis.Redis) -> None:
    Verification.objects.all().delete()
    Verification.objects.ask(by=SYSTEM)
    sweeper = Sweeper()
    assert [sweeper.ring_for_verifications(), sweeper.ring_for_verifications()] == [1, 0]
    sweeper.verifying.rung = {key: (at - 5, pause) for key, (at, pause) in sweeper.verifying.rung.items()}
    assert sweeper.ring_for_verifications() == 1
    Verification.objects.all().delete()


def test_messages_that_waited_for_too_long_are_dropped_and_a_new_run_is_taken_up(
    celery_worker: Starter, server: redis.Redis
) -> None:
    old = make_run("hopper")
    stale = json.loads(server.lindex(QUEUE, 0))  # type: ignore[arg-type]
    assert datetime.fromisoformat(stale["headers"]["expires"]) > datetime.now(UTC)
    stale["headers"]["expires"] = "2024-01-01T00:00:00+00:00"
    server.delete(QUEUE)
    server.lpush(QUEUE, *[json.dumps(stale)] * 1_800)
    new = make_run("hopper")
    celery_worker("-c", "1")
    until(lambda: Run.objects.get(pk=new.pk).status == "completed", what="the new run is done")
    assert Run.objects.get(pk=old.pk).status == "queued"
