"""Real workers, a real sweeper and a real Redis: rung after the commit, killed in the middle, deaf."""

from __future__ import annotations

import pytest
import redis

from agents.ringing import doorbell
from approvals.models import Delivery
from tests.conftest import Starter
from tests.harness.waiting import until

from .made_webhooks import abandoned, columns, make_delivery, results
from .receiver import Receiver

INSIDE = {"HOLDPOINT_WEBHOOKS_PRIVATE": "127.0.0.0/8"}


@pytest.fixture(autouse=True)
def no_old_bells(redis_url: str) -> None:
    """What other tests rang for is not this one's: a worker that is to die with its first message must get its own."""
    redis.Redis.from_url(redis_url).flushall()


def ended(delivery: Delivery) -> bool:
    return columns(delivery, "status") != ("pending",)


@pytest.mark.long
@pytest.mark.parametrize(("place", "arrived"), [("webhook_sent", 2), ("webhook_taken", 1)])
def test_a_worker_killed_in_the_middle_leaves_a_message_that_is_sent_again_under_its_id(
    place: str, arrived: int, celery_worker: Starter, sweeper: Starter, receiver: Receiver
) -> None:
    dies = celery_worker("-c", "1", "--pool", "solo", env={**INSIDE, "HOLDPOINT_CRASH": f"{place}:kill"})
    delivery, secret = make_delivery(receiver.url)
    until(lambda: not dies.alive, what="the worker was killed")
    assert (columns(delivery, "status"), results(delivery)) == (("pending",), [""])
    celery_worker("-c", "1", env=INSIDE)
    sweeper()
    abandoned(delivery)  # its lease is over
    until(lambda: ended(delivery), what="another worker sent it")
    assert results(delivery) == ["lost", "delivered"]
    assert [got.id for got in receiver.got] == [delivery.message] * arrived
    assert all(got.verified(secret) for got in receiver.got)


@pytest.mark.long
def test_a_deaf_broker_delays_and_loses_nothing(
    celery_worker: Starter, sweeper: Starter, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doorbell, "_quiet_until", float("inf"))  # nothing that this process rings arrives
    delivery, _ = make_delivery(receiver.url)
    assert (columns(delivery, "status"), receiver.got) == (("pending",), [])
    celery_worker("-c", "1", env=INSIDE)
    sweeper()
    until(lambda: ended(delivery), what="the sweeper rang for it")
    assert (results(delivery), len(receiver.got)) == (["delivered"], 1)
