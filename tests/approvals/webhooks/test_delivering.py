"""Messages arrive at least once, under one id, whatever becomes of receivers, workers and Redis."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import redis
from django.db.models.functions import Now

from approvals.channels.webhook import CONNECTIONS, waiting
from approvals.gates import closing
from approvals.models import ChannelState, Message, MessageAttempt, Webhook
from approvals.models.notifications import MessageEnd
from approvals.models.notifications.channel_state import channel_of
from approvals.notifications import log
from approvals.webhooks import outbox
from checkpoints import actors
from checkpoints.actors import SYSTEM
from checkpoints.models import Event
from tests.conftest import Starter
from tests.factories import ann, decide, edit_amount, make_gate, make_policy, make_team
from tests.harness.racing_threads import race
from tests.harness.waiting import until

from .made_webhooks import (
    SOON,
    abandoned,
    columns,
    deliver,
    fresh,
    make_delivery,
    make_webhook,
    of,
    one_more,
    results,
    sent,
    take,
)
from .receiver import Receiver, status

NewReceiver = Callable[..., Receiver]
PENDING, SENT, FAILED = Message.Status.PENDING, Message.Status.SENT, Message.Status.FAILED


def events(webhook: Webhook) -> list[tuple[str, Any]]:
    found = Event.objects.filter(subject=webhook.subject).order_by("pk")
    return [(event.kind, json.loads(bytes(event.data)).get("reason")) for event in found]


def disabled(webhook: Webhook) -> tuple[str, str]:
    webhook.refresh_from_db()
    return webhook.status, webhook.reason


def test_a_gate_that_opens_is_decided_expires_or_is_withdrawn_is_told_by_numbers() -> None:
    team = make_team()
    make_webhook(team=team)
    gate = make_gate(team=team)
    decide(gate, ann(team), "edit", arguments=edit_amount(gate, "80.00"), comment="The limit")
    opened, closed = of(gate)
    told = json.loads(bytes(closed.body))
    assert (opened.kind, closed.kind, told["type"]) == ("gate.opened", "gate.closed", "gate.closed")
    assert told["data"] == {
        "gate": gate.pk, "run": gate.run_id, "agent": gate.run.plan.agent, "team": team.pk, "step": "review",
        "seq": 1, "kind": "review", "status": "decided", "outcome": "edited",
    }  # fmt: skip
    gate.refresh_from_db()
    assert dt.datetime.fromisoformat(told["timestamp"]) == gate.closed_at
    assert json.loads(bytes(opened.body))["data"]["outcome"] is None
    said = b"".join(bytes(each.body) for each in (opened, closed)).decode()
    assert [private for private in ("Marit", "80.00", "limit", "Ann", gate.title) if private in said] == []
    late = make_gate(policy=make_policy(team, deadline=dt.timedelta(hours=1)))
    closing.pass_deadline(late)
    closing.expire(late)
    gone = make_gate(policy=make_policy(team, name="other"))
    closing.withdraw(gone, by=SYSTEM, reason="Not needed")
    assert [each.kind for each in of(late)] == ["gate.opened", "gate.expired"]
    assert [each.kind for each in of(gone)] == ["gate.opened", "gate.withdrawn"]


def test_other_teams_other_agents_disabled_and_removed_webhooks_hear_nothing() -> None:
    team = make_team()
    make_webhook()
    make_webhook(team=team, agent="another")
    make_webhook(team=team)[0].disable(Webhook.Reason.BY_HAND)
    make_webhook(team=team)[0].remove(by=SYSTEM)
    gate = make_gate(team=team)
    assert of(gate) == []
    webhook, _ = make_webhook(team=team, agent=gate.run.plan.agent)
    decide(gate, ann(team))
    assert [(each.webhook_id, each.kind) for each in of(gate)] == [(webhook.pk, "gate.closed")]


def test_a_decision_that_is_rolled_back_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    team = make_team()
    make_webhook(team=team)
    gate = make_gate(team=team)
    monkeypatch.setattr("checkpoints.models.Run.wake", None)
    with pytest.raises(TypeError):
        decide(gate, ann(team))
    assert [each.kind for each in of(gate)] == ["gate.opened"]


def test_it_is_sent_again_under_the_same_id_until_it_arrives_once(receiver: Receiver) -> None:
    receiver.answers.extend([status(503), status(500)])
    delivery, secret = make_delivery(receiver.url)
    assert [sent(delivery) for _ in range(3)] == ["http_503", "http_500", "delivered"]
    assert {got.id for got in receiver.got} == {delivery.name}
    assert [got.body for got in receiver.got] == [bytes(delivery.body)] * 3
    assert all(got.verified(secret) for got in receiver.got)
    assert columns(delivery, "status", "attempts", "next_attempt_at") == (SENT, 3, None)
    assert deliver(delivery) == 0
    assert len(receiver.got) == 3
    attempts = MessageAttempt.objects.filter(message=delivery).order_by("number")
    assert [(each.number, each.status) for each in attempts] == [(1, 503), (2, 500), (3, 204)]
    assert log.words(attempts[0].result) == "the server answered 503"
    # After the last try it has failed, and is sent again by order alone.
    receiver.answers.extend([status(500)] * 4)
    delivery, _ = make_delivery(receiver.url)
    for _ in range(4):
        sent(delivery)
    assert columns(delivery, "status", "word", "attempts") == (FAILED, "http_500", 4)
    by = actors.of_user(ann())
    assert fresh(delivery).send_again(by=by)
    assert not fresh(delivery).send_again(by=by)
    assert sent(delivery) == "delivered"
    assert columns(delivery, "status", "attempts", "tries") == (SENT, 5, 1)
    assert events(delivery.webhook)[-1][0] == "webhook.resent"


def test_before_its_pause_or_that_which_the_receiver_asks_for_is_over_it_is_not_sent(receiver: Receiver) -> None:
    for answer, least, most in ((status(503), 3, 7), (status(429, Retry_After="1800"), 1795, 1805)):
        receiver.otherwise = answer
        delivery, _ = make_delivery(receiver.url)
        sent(delivery)
        assert deliver(delivery) == 0
        [due] = columns(delivery, "next_attempt_at")
        pause = due - MessageAttempt.objects.get(message=delivery).at
        assert dt.timedelta(seconds=least) < pause < dt.timedelta(seconds=most)


def test_of_many_workers_at_once_one_sends(receiver: Receiver) -> None:
    delivery, _ = make_delivery(receiver.url)
    assert sorted(race([partial(deliver, delivery) for _ in range(8)])) == [0] * 7 + [1]
    assert (len(receiver.got), results(delivery)) == (1, ["delivered"])


def test_a_worker_that_was_lost_is_recorded_as_that_and_changes_nothing_where_it_comes_back(receiver: Receiver) -> None:
    delivery, _ = make_delivery(receiver.url)
    slow = take(delivery)
    assert deliver(delivery) == 0, "somebody has it in hand"
    abandoned(delivery)
    assert sent(delivery) == "delivered"
    assert results(delivery) == ["lost", "delivered"]
    assert [got.id for got in receiver.got] == [delivery.name]
    assert Message.objects.end([MessageEnd(slow, PENDING, "timeout", pause=5.0, result="timeout")]) == set()
    assert columns(delivery, "status", "word") == (SENT, "delivered")
    assert results(delivery) == ["timeout", "delivered"]


def test_a_message_whose_workers_die_each_time_is_given_up_in_the_end(receiver: Receiver) -> None:
    """Nothing that was recorded ever made it wait: it killed a worker at each lease's end, for good."""
    delivery, _ = make_delivery(receiver.url)
    for _ in range(4):
        take(delivery)
        abandoned(delivery)
    assert deliver(delivery) == 1
    assert columns(delivery, "status", "word", "attempts") == (FAILED, "lost", 4)
    assert (results(delivery), receiver.got) == (["lost"] * 4, [])


def test_a_worker_that_dies_counts_no_attempt_of_what_it_had_not_begun_to_send(receiver: Receiver) -> None:
    """Everything that a sender took was counted as tried: a hundred messages failed for one that killed it."""
    webhook, _ = make_webhook(receiver.url)
    waiting = [one_more(webhook) for _ in range(4)]
    taken = Message.objects.take(channel_of(webhook.pk), 4)
    Message.objects.hand_over(taken[:1])
    for each in waiting:
        abandoned(each)
    assert sorted(columns(each, "attempts") for each in waiting) == [(0,), (0,), (0,), (1,)]
    assert deliver(waiting[0]) == 4
    assert sorted(results(each) for each in waiting) == [["delivered"]] * 3 + [["lost", "delivered"]]


def test_one_webhook_takes_one_worker_and_delays_no_other(receiver: Receiver) -> None:
    """A receiver that takes its time over a thousand messages left no worker for the agents."""
    webhook, _ = make_webhook(receiver.url)
    waiting = [one_more(webhook) for _ in range(4)]
    busy = ChannelState.objects.take(channel_of(webhook.pk))
    assert busy is not None
    assert deliver(waiting[0]) == 0
    assert sent(make_delivery(receiver.url)[0]) == "delivered"
    busy.release(reached=True)
    assert deliver(waiting[0]) == 4


def test_a_receiver_that_nobody_reaches_rests_and_a_test_message_tries_it_at_once(receiver: Receiver) -> None:
    """Each message to a dead receiver cost a worker its time limit."""
    receiver.stop()
    delivery, _ = make_delivery(receiver.url)
    more = [one_more(delivery.webhook) for _ in range(3)]
    assert deliver(delivery) == 4
    assert sum(columns(each, "attempts")[0] for each in (delivery, *more)) == CONNECTIONS
    assert deliver(delivery) == 0, "it rests"
    one_more(delivery.webhook)
    assert deliver(delivery) > 0
    assert deliver(delivery) == 0, "it rests again"
    assert delivery.webhook.disable(Webhook.Reason.BY_HAND, by=SYSTEM)
    assert delivery.webhook.enable(by=SYSTEM)
    assert deliver(delivery) > 0


def test_410_disables_the_webhook_with_its_reason_and_the_message_has_failed(receiver: Receiver) -> None:
    receiver.answers.append(status(410))
    delivery, _ = make_delivery(receiver.url)
    assert sent(delivery) == "gone"
    assert columns(delivery, "status", "word") == (FAILED, "gone")
    assert disabled(delivery.webhook) == ("disabled", "gone")
    assert events(delivery.webhook)[-1] == ("webhook.disabled", "gone")
    assert outbox.test(delivery.webhook, by=SYSTEM) is None


def test_one_that_fails_for_days_is_disabled_and_one_success_starts_the_count_anew(receiver: Receiver) -> None:
    receiver.answers.extend([status(500), status(204), status(500), status(500)])
    webhook, _ = make_webhook(receiver.url)
    for _ in range(2):
        sent(one_more(webhook))
    webhook.refresh_from_db()
    assert webhook.failing_since is None
    sent(one_more(webhook))
    assert disabled(webhook) == ("enabled", "")
    last = one_more(webhook)
    Webhook.objects.filter(pk=webhook.pk).update(failing_since=Now() - dt.timedelta(days=5, minutes=1))
    sent(last)
    assert disabled(webhook) == ("disabled", "failing")
    assert columns(last, "status") == (PENDING,)


def test_what_waits_for_a_disabled_one_waits_until_it_is_enabled_again(receiver: Receiver) -> None:
    delivery, _ = make_delivery(receiver.url)
    webhook, by = delivery.webhook, actors.of_user(ann())
    assert webhook.disable(Webhook.Reason.BY_HAND, by=by)
    assert not webhook.disable(Webhook.Reason.BY_HAND, by=by)
    assert deliver(delivery) == 0
    assert delivery.webhook_id not in {number for number, _ in waiting()}
    assert receiver.got == []
    assert webhook.enable(by=by)
    assert sent(delivery) == "delivered"
    assert [kind for kind, _ in events(webhook)[-2:]] == ["webhook.disabled", "webhook.enabled"]


def test_what_waits_for_a_removed_one_fails(receiver: Receiver) -> None:
    delivery, _ = make_delivery(receiver.url)
    assert delivery.webhook.remove(by=SYSTEM)
    assert not delivery.webhook.remove(by=SYSTEM)
    assert not delivery.webhook.enable(by=SYSTEM)
    assert columns(delivery, "status", "word") == (FAILED, "removed")
    assert not fresh(delivery).send_again(by=SYSTEM)
    assert delivery.webhook.rotate(by=SYSTEM) == ""


def test_without_the_key_of_its_secret_nothing_is_sent_and_a_rotation_mends_it(
    receiver: Receiver, settings: Any
) -> None:
    delivery, old = make_delivery(receiver.url)
    row = Webhook.objects.filter(pk=delivery.webhook_id).values().get()
    assert old.startswith("whsec_")
    assert not any(old[6:] in str(value) for value in row.values())
    before, settings.SECRET_KEY = settings.SECRET_KEY, "another key of this installation, as long as the one before" * 2
    assert sent(delivery) == "secret_lost"
    assert receiver.got == []
    assert disabled(delivery.webhook) == ("disabled", "secret_lost")
    settings.SECRET_KEY_FALLBACKS = [before]
    delivery.webhook.enable(by=SYSTEM)
    assert sent(delivery) == "delivered"
    assert receiver.got[0].verified(old)
    settings.SECRET_KEY_FALLBACKS = []
    secret = delivery.webhook.rotate(by=SYSTEM)
    assert sent(one_more(delivery.webhook)) == "delivered"
    assert secret != old
    assert receiver.got[1].verified(secret)


def test_after_a_rotation_both_sign_for_a_day_and_then_the_new_one_alone(receiver: Receiver) -> None:
    webhook, old = make_webhook(receiver.url)
    new = webhook.rotate(by=SYSTEM)
    sent(one_more(webhook))
    assert receiver.got[0].verified(old)
    assert receiver.got[0].verified(new)
    Webhook.objects.filter(pk=webhook.pk).update(former_until=Now() - SOON)
    sent(one_more(webhook))
    assert receiver.got[1].verified(new)
    assert len(receiver.got[1].headers["webhook-signature"].split()) == 1


def test_old_messages_are_cleared_and_what_is_in_hand_is_not() -> None:
    old, held, young = (make_delivery()[0] for _ in range(3))
    take(held)
    days = dt.timedelta(days=31)
    Message.objects.filter(pk__in=[old.pk, held.pk]).update(created_at=Now() - days)
    log.clear()
    left = set(Message.objects.filter(pk__in=[old.pk, held.pk, young.pk]).values_list("pk", flat=True))
    assert left == {held.pk, young.pk}


@pytest.mark.long
@pytest.mark.parametrize(("place", "arrived"), [("messages_sent", 2), ("messages_handed_over", 1)])
def test_a_worker_killed_in_the_middle_leaves_a_message_that_is_sent_again_under_its_id(
    place: str, arrived: int, celery_worker: Starter, sweeper: Starter, receiver: Receiver, redis_url: str
) -> None:
    redis.Redis.from_url(redis_url).flushall()  # the worker is to die with its first message
    inside = {"HOLDPOINT_WEBHOOKS_PRIVATE": "127.0.0.0/8"}
    dies = celery_worker("-c", "1", "--pool", "solo", env={**inside, "HOLDPOINT_CRASH": f"{place}:kill"})
    delivery, secret = make_delivery(receiver.url)
    until(lambda: not dies.alive, what="the worker was killed")
    assert (columns(delivery, "status"), results(delivery)) == ((PENDING,), [""])
    celery_worker("-c", "1", env=inside)
    sweeper()
    abandoned(delivery)
    until(lambda: columns(delivery, "status") != (PENDING,), what="another worker sent it")
    assert results(delivery) == ["lost", "delivered"]
    assert [got.id for got in receiver.got] == [delivery.name] * arrived
    assert all(got.verified(secret) for got in receiver.got)
