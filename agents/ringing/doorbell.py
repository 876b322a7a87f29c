"""Sends doorbells: Celery messages that carry a run's id and no authority.

A broker that is down never fails or stalls the caller, whose work is committed: the loss is logged, nothing is sent for
a moment, and the sweeper rings again. So doorbells have a connection of their own, which gives up at once, where
Celery's waits for seconds.

Celery makes the message, and the transport's channel puts it into its queue. What Celery does in between for any
message (routes, exchanges, declarations, retries) takes longer than all the rest and does nothing for a doorbell.

Also here: the lists of messages in Redis: one for each queue and urgency, and how many messages wait in them.

A worker reads the urgent lists of all its queues first, then the others, then those that can wait. The list of the
priorities in the middle has the queue's own name, which processes of an earlier release use for all messages.
"""

from __future__ import annotations

import json
import time
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import redis
import structlog
from celery import current_app
from django.conf import settings
from kombu import Connection
from kombu.exceptions import BatchPublishError, LimitExceeded, OperationalError  # type: ignore[attr-defined]
from kombu.pools import producers
from kombu.utils.uuid import uuid
from redis.exceptions import RedisError

from agents.definition import registry
from checkpoints import request_ids
from checkpoints.models import Plan
from checkpoints.models.run import NORMAL

from .ring_pauses import EXPIRES

TIMEOUT = 0.5  # seconds, to connect and to send
PAUSE_AFTER_FAILURE = 1.0
URGENT = 0  # a person waits
LATER = 7  # the priority of what delays nobody's run
log = structlog.get_logger()
_quiet_until = 0.0


class Bell(NamedTuple):
    """One message: about which run, or other number, into which queue, and how urgent."""

    number: int
    queue: str
    priority: int = NORMAL


def ring(run_id: int, queue: str, priority: int = NORMAL) -> bool:
    """Ask a worker to look at the run, in its turn by `priority`: 0 is the most urgent, 9 the least.

    Returns whether the broker took the message, and never raises for a dead broker. Nothing is sent for a run of an
    external agent (no queue): its program hears of it as pages do.
    """
    return not queue or _send("agents.advance", [Bell(run_id, queue, priority)])


def ring_for_many(runs: Iterable[tuple[int, str, int]]) -> bool:
    """Ask workers to look at these runs, each with its queue and priority, by messages sent together; as `ring`."""
    bells = [Bell(*run) for run in runs if run[1]]
    return not bells or _send("agents.advance", bells)


def ring_for_verification(verification: int) -> bool:
    """Ask any worker to continue a verification of the audit; as `ring`."""
    return _send("approvals.verify", [Bell(verification, current_app.conf.task_default_queue)])


def ring_for_webhook(webhook: int) -> bool:
    """Ask any worker to send what is due to a webhook; as `ring`."""
    return _send("approvals.deliver", [Bell(webhook, current_app.conf.task_default_queue)])


def ring_for_notices() -> bool:
    """Ask any worker to write and send what people are to be told, after what is more urgent; as `ring`."""
    return _send("approvals.notify", [Bell(1, current_app.conf.task_default_queue, priority=LATER)])


def ring_for_question(question: int, queue: str) -> bool:
    """Ask a worker of the agent's version to answer a question at a gate; as `ring`."""
    return not queue or _send("agents.question", [Bell(question, queue, URGENT)])


def ring_for_children(run_id: int) -> bool:
    """Ask any worker to carry out what a run ordered its children; as `ring`."""
    return _send("agents.children", [Bell(run_id, current_app.conf.task_default_queue)])


def _send(task: str, bells: Sequence[Bell]) -> bool:
    global _quiet_until
    if time.monotonic() < _quiet_until:
        return False
    try:
        with producers[_connection()].acquire(block=True, timeout=TIMEOUT) as producer:
            if len(bells) > 1:
                _publish_together(producer.channel, task, bells)
            else:
                message = _message(producer.channel, task, bells[0])
                producer.channel.basic_publish(message, exchange="", routing_key=bells[0].queue)
    except (LimitExceeded, OperationalError, BatchPublishError, RedisError, OSError) as error:
        # The first: more threads than connections.
        _quiet_until = time.monotonic() + PAUSE_AFTER_FAILURE
        first = bells[0]
        log.warning("doorbell.lost", task=task, number=first.number, queue=first.queue, of=len(bells), error=str(error))
        return False
    return True


def _publish_together(channel: Any, task: str, bells: Sequence[Bell]) -> None:
    """Send messages by one pipeline. Raises BatchPublishError."""
    batch = channel.create_publish_batch(len(bells))
    try:
        for bell in bells:
            batch.publish(_message(channel, task, bell), exchange="", routing_key=bell.queue)
        batch.flush()
    finally:
        batch.close()


def _message(channel: Any, task: str, bell: Bell) -> Any:
    """Build the message that Celery's `send_task` would send for this task."""
    made = current_app.amqp.create_task_message(
        request_ids.message_id() or uuid(), task, args=(bell.number,), argsrepr=f"({bell.number},)", kwargsrepr="{}",
        expires=EXPIRES, ignore_result=True,
    )  # fmt: skip
    return channel.prepare_message(
        json.dumps(made.body), content_type="application/json", content_encoding="utf-8", headers=made.headers,
        properties={**made.properties, "delivery_mode": 2, "priority": bell.priority},
    )  # fmt: skip


def silence() -> None:
    """Send no doorbells any more: for a process that works on its runs by itself."""
    global _quiet_until
    _quiet_until = float("inf")


@contextmanager
def silenced() -> Iterator[None]:
    """Send no doorbells inside the block."""
    global _quiet_until
    before = _quiet_until
    silence()
    try:
        yield
    finally:
        _quiet_until = before


def on_attention(sender: Any, run_id: int, plan: Plan, priority: int, **_: Any) -> None:
    """Ring for the version that takes the run; the receiver of checkpoints' one signal, sent after commit."""
    ring(run_id, registry.queue_for(plan), priority)


@cache
def _connection() -> Connection:
    impatient = {
        "max_retries": 1,
        "interval_start": 0,
        "interval_step": 0,
        "socket_connect_timeout": TIMEOUT,
        "socket_timeout": TIMEOUT,
    }
    options = {**settings.CELERY_BROKER_TRANSPORT_OPTIONS, **impatient}
    return current_app.connection_for_write().clone(transport_options=options)


MARK = "holdpoint.sweeper"  # which a sweeper sets; where it is missing, messages were lost
TIMEOUT = 0.5  # seconds, to connect and to be answered
STEPS = [0, 4, 7]  # the first priority of each list
PLAIN = 4
SEPARATOR = "\x06\x16"  # Kombu's, before which a list's name is that of its queue


def key(queue: str, priority: int) -> str:
    """Return the name of the list for messages of this priority."""
    step = STEPS[bisect(STEPS, priority) - 1]
    return queue if step == PLAIN else f"{queue}{SEPARATOR}{step}"


def waiting(queues: Iterable[str]) -> dict[str, int]:
    """Count the messages in each of these queues; 0 where a key of another type has its name.

    Raises redis.RedisError where Redis does not answer.
    """
    names = list(dict.fromkeys(queues))
    pipe = client().pipeline(transaction=False)
    for name in names:
        for step in STEPS:
            pipe.llen(key(name, step))
    lengths = pipe.execute(raise_on_error=False) if names else []
    counts = iter(length if isinstance(length, int) else 0 for length in lengths)
    return {name: sum(next(counts) for _ in STEPS) for name in names}


def ring_anew() -> None:
    """Have the sweeper ring again for all that is due, without pauses: workers that are gone may have taken messages.

    Raises redis.RedisError.
    """
    client().delete(MARK)


def client() -> redis.Redis:
    """Return this process's Redis client, which times out after half a second."""
    return _client(settings.REDIS_URL)


@cache
def _client(url: str) -> redis.Redis:
    return redis.Redis.from_url(url, socket_timeout=TIMEOUT, socket_connect_timeout=TIMEOUT)
