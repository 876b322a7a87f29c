"""Real workers, a real sweeper and a real Redis: rung after the commit, killed in the middle, deaf."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import redis

from agents.ringing import doorbell
from approvals.models import Delivery
from tests.conftest import Starter
from tests.factories import ann, decide, make_gate, make_team
from tests.harness.waiting import until

from .made_webhooks import abandoned, columns, make_delivery, make_webhook, of, results
from .receiver import Receiver

INSIDE = {"HOLDPOINT_WEBHOOKS_PRIVATE": "127.0.0.0/8"}


@pytest.fixture(autouse=True)
def no_old_bells(redis_url: str) -> None:
    """What other tests rang for is not this one's: a worker that is to die with its first message must get its own."""
    redis.Redis.from_url(redis_url).flushall()


def ended(delivery: Delivery) -> bool:
    return columns(delivery, "status") != ("pending",)


def test_a_gate_is_told_of_as_soon_as_it_is_decided(celery_worker: Starter, receiver: Receiver) -> None:
    celery_worker("-c", "1", env=INSIDE)
    team = make_team()
    _, secret = make_webhook(receiver.url, team=team)
    gate = make_gate(team=team)
    decide(gate, ann(team))
    until(lambda: len(receiver.got) == 2, what="both messages came, rung for after the commit")
    told = [got.verified(secret) for got in receiver.got]
    assert {each["type"]: each["data"]["outcome"] for each in told} == {"gate.opened": None, "gate.closed": "approved"}
    until(lambda: all(ended(each) for each in of(gate)), what="both are recorded")
    assert [results(each) for each in of(gate)] == [["delivered"]] * 2


@pytest.mark.parametrize(("place", "arrived"), [("webhook_taken", 1), ("webhook_sent", 2)])
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


def test_a_deaf_broker_delays_and_loses_nothing(
    celery_worker: Starter,
    sweeper: Starter,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doorbell, "_quiet_until", float("inf"))  # nothing that this process rings arrives
    delivery, _ = make_delivery(receiver.url)
    assert (columns(delivery, "status"), receiver.got) == (("pending",), [])
    celery_worker("-c", "1", env=INSIDE)
    sweeper()
    until(lambda: ended(delivery), what="the sweeper rang for it")
    assert (results(delivery), len(receiver.got)) == (["delivered"], 1)


def test_what_failed_is_rung_for_when_its_pause_is_over(
    celery_worker: Starter, sweeper: Starter, new_receiver: Callable[..., Receiver]
) -> None:
    receiver = new_receiver()
    port = receiver.port
    receiver.stop()
    delivery, _ = make_delivery(receiver.url)
    celery_worker("-c", "1", env={**INSIDE, "HOLDPOINT_WEBHOOKS_RETRIES": "0.5,0.5,0.5,0.5,60,60,60"})
    sweeper()
    until(lambda: "refused" in results(delivery), what="it was tried and nobody was there")
    again = new_receiver(port=port)
    until(lambda: ended(delivery), what="it was tried until somebody was")
    assert columns(delivery, "status") == ("delivered",)
    assert {got.id for got in again.got} == {delivery.message}
    assert results(delivery)[-1] == "delivered"
    assert set(results(delivery)[:-1]) == {"refused"}
