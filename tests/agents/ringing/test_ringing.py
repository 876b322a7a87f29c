"""However long workers are away and however often sweepers start anew, no queue grows beyond what is due in it."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis
from django.conf import settings
from django.contrib.auth.models import Group
from django.db.models.functions import Now
from kombu.pools import producers

from agents.ringing import doorbell
from agents.ringing.ring_pauses import EXPIRES
from agents.serving.sweeper import Sweeper
from agents.tasks import advance
from approvals.webhooks import outbox
from checkpoints.actors import SYSTEM
from checkpoints.models import Run, Verification
from config.housekeeping import sing
from tests.approvals.webhooks.made_webhooks import make_webhook
from tests.factories import make_plan, make_spec, make_team
from tests.factories import make_run as make_stored
from tests.factories.driven_runs import make_run
from tests.harness import services
from tests.harness.waiting import until

Starter = Callable[..., services.Service]
QUEUE, OLDER = "agent.hopper.1", "agent.hopper.0"
DUE, TIMES = 20, 4


def rung(message: Any) -> int:
    """The number that a message asks to look at; 0 for a message without one."""
    (number,) = json.loads(base64.b64decode(json.loads(message)["body"]))[0] or [0]
    return int(number)


def parts(message: Any) -> dict[str, Any]:
    """A message without what differs between any two, and what the broker does not read."""
    made = json.loads(message)
    for left, names in (("headers", ("id", "root_id", "expires")),
                        ("properties", ("correlation_id", "delivery_tag", "reply_to", "expiration"))):  # fmt: skip
        made[left] = {name: value for name, value in made[left].items() if name not in names}
    return {**made, "body": json.loads(base64.b64decode(made["body"]))}


def test_a_doorbell_is_the_message_that_celery_would_send(server: redis.Redis) -> None:
    assert doorbell.ring(7, QUEUE)
    advance.apply_async(args=(7,), queue=QUEUE, expires=EXPIRES, ignore_result=True)
    celerys: Any = server.lpop(QUEUE)
    ours: Any = server.lpop(QUEUE)
    assert parts(ours) == parts(celerys)
    sent, due = json.loads(ours)["headers"], datetime.now(UTC) + timedelta(seconds=EXPIRES)
    assert sent["id"] == sent["root_id"] == json.loads(ours)["properties"]["correlation_id"]
    assert abs(datetime.fromisoformat(sent["expires"]) - due) < timedelta(minutes=1)


def test_doorbells_that_are_sent_together_are_the_same_messages(server: redis.Redis) -> None:
    assert doorbell.ring_for_many(
        [(7, QUEUE, 5), (8, OLDER, 5), (9, QUEUE, 5), (10, "", 5)]
    )  # the last: an external agent's
    assert doorbell.ring(7, QUEUE)
    alone, *together = (server.lindex(QUEUE, at) for at in range(3))
    assert ([rung(each) for each in together], rung(server.lindex(OLDER, 0))) == ([9, 7], 8)
    assert parts(together[1]) == parts(alone)


def test_doorbells_arrive_after_their_connection_was_lost(server: redis.Redis) -> None:
    assert doorbell.ring(6, QUEUE)
    server.client_kill_filter(_type="normal", skipme=True)
    assert doorbell.ring(7, QUEUE)
    server.client_kill_filter(_type="normal", skipme=True)
    assert doorbell.ring_for_many([(8, QUEUE, 5), (9, QUEUE, 5)])
    assert [rung(server.lindex(QUEUE, at)) for at in range(3)] == [9, 8, 7]


def test_a_doorbell_for_which_no_connection_is_free_is_lost_and_nobody_fails(
    server: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a dead broker, more threads than connections raised where a gate had just been decided."""
    monkeypatch.setattr(doorbell, "TIMEOUT", 0.01)
    monkeypatch.setattr(doorbell, "_quiet_until", 0.0)
    pool = producers[doorbell._connection()]
    taken = [pool.acquire() for _ in range(pool.limit)]
    try:
        assert not doorbell.ring(7, QUEUE)
    finally:
        for each in taken:
            each.release()


def test_sweepers_that_start_anew_ring_for_no_run_whose_message_waits(server: redis.Redis) -> None:
    """2,725 messages waited for 170 runs, and a new run behind 1,801 of them."""
    team = make_team()
    for _ in range(DUE):
        make_run("hopper", team=team)
    for _ in range(TIMES):
        Sweeper().sweep_once()
    assert doorbell.waiting([QUEUE, "agent.nobody.1"]) == {QUEUE: DUE, "agent.nobody.1": 0}
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
    assert rung(server.lindex(QUEUE, 0)) == lost.pk


def make_older(number: int, *, team: Group) -> list[Run]:
    """Due runs of a version of hopper that nobody serves, each with its message in the version's queue."""
    plan = make_plan(make_spec("hopper", version="0"))
    runs = [make_stored(plan=plan, team=team) for _ in range(number)]
    for run in runs:
        assert doorbell.ring(run.pk, OLDER)
    return runs


def test_runs_whose_messages_wait_keep_no_other_from_being_rung_for(
    server: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hundred runs of a version that nobody serves were found in every pass, and no run after them ever was."""
    team = make_team()
    monkeypatch.setattr("agents.serving.sweeper.AT_ONCE", 10)
    older = make_older(10, team=team)
    queued, lost = make_run("hopper", team=team), make_run("hopper", team=team)
    Run.objects.filter(pk=lost.pk).update(status="running", token=1, lease_until=Now() - timedelta(seconds=1))
    server.delete(QUEUE)
    assert Sweeper().ring_due() == 2
    assert [rung(message) for message in server.lrange(QUEUE, 0, -1)] == [queued.pk, lost.pk]
    assert server.llen(OLDER) == len(older)


def test_a_pass_is_shared_among_the_queues(server: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a flush the runs of one agent would be rung for first, all of them, and the others' minutes later."""
    team = make_team()
    monkeypatch.setattr("agents.serving.sweeper.AT_ONCE", 10)
    make_older(20, team=team)
    few = [make_run("hopper", team=team).pk for _ in range(3)]
    server.flushall()
    sweeper = Sweeper()
    assert [sweeper.ring_due(), sorted(rung(message) for message in server.lrange(QUEUE, 0, -1))] == [10, few]
    assert [sweeper.ring_due(), sweeper.ring_due(), sweeper.ring_due()] == [10, 3, 0]


def test_plans_that_share_a_queue_share_its_room(server: redis.Redis) -> None:
    """Messages of the one's runs were counted against the other's alone, and so a lost bell stayed lost."""
    lost = make_run("hopper")
    waits = make_stored(plan=make_plan(make_spec("hopper")))  # the same version, of code that has changed since
    server.delete(QUEUE)
    sweeper = Sweeper()
    assert doorbell.ring(waits.pk, QUEUE)
    sweeper.bells.rang(waits.pk, waits.token, time.monotonic())
    assert sweeper.ring_due() == 1
    assert rung(server.lindex(QUEUE, 0)) == lost.pk


def test_a_delivery_is_rung_for_beside_other_messages_that_wait(server: redis.Redis) -> None:
    """One canary that waited beside it in the housekeeping queue kept it from being rung for."""
    webhook, _ = make_webhook()
    delivery = outbox.test(webhook, by=SYSTEM)
    assert delivery is not None
    server.flushall()
    queue = settings.CELERY_TASK_DEFAULT_QUEUE
    sing.apply_async(queue=queue)
    sweeper = Sweeper()
    sweeper.ring_for_webhooks()
    assert webhook.pk in [rung(message) for message in server.lrange(queue, 0, 0)]
    held = server.llen(queue)
    assert sweeper.ring_for_webhooks() == 0  # each has its pause
    assert server.llen(queue) == held


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
    server.lpush(QUEUE, *[json.dumps(stale)] * 200)
    new = make_run("hopper")
    celery_worker("-c", "1")
    until(lambda: Run.objects.get(pk=new.pk).status == "completed", what="the new run is done")
    assert Run.objects.get(pk=old.pk).status == "queued"
