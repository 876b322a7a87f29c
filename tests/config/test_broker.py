"""A worker outlives whatever stands in its queue: it discards the message, says so, and takes the next."""

from __future__ import annotations

import base64
import json
import pickle
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import redis

from config import messages
from config.celery import app
from config.messages import find_fault
from tests.conftest import Starter
from tests.harness.waiting import until

QUEUE = "holdpoint"
Message = dict[str, Any]


def doorbell(client: redis.Redis, name: str = "config.housekeeping.sing", **options: Any) -> Message:
    """A message as this project sends it, taken back out of its queue."""
    app.send_task(name, queue="test-scratch", ignore_result=True, **options)
    raw = client.rpop("test-scratch")
    assert isinstance(raw, bytes)
    made: Message = json.loads(raw)
    made["properties"]["delivery_info"]["routing_key"] = QUEUE
    return made


def with_headers(**headers: Any) -> Callable[[Message], Any]:
    return lambda message: {**message, "headers": {**message["headers"], **headers}}


def with_properties(**properties: Any) -> Callable[[Message], Any]:
    return lambda message: {**message, "properties": {**message["properties"], **properties}}


def with_body(body: Any) -> Callable[[Message], Any]:
    return lambda message: {**message, "body": base64.b64encode(json.dumps(body).encode()).decode()}


NOTHING = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}
OTHER: Message = {
    "task": "agents.advance", "args": [1], "kwargs": {}, "options": {}, "subtask_type": None, "immutable": False,
}  # fmt: skip
FORGED: dict[str, Callable[[Message], Any]] = {
    "not JSON": lambda message: b"not json",
    "not text": lambda message: b"\xff\xfe\x00",
    "deep": lambda message: b"[" * 100_000,
    "a type that kombu makes": lambda message: {"__type__": "decimal", "__value__": "x"},
    "no headers": lambda message: {**message, "headers": None},
    "no body": lambda message: {k: v for k, v in message.items() if k != "body"},
    "unknown task": with_headers(task="os.system"),
    "a task of Celery's": with_headers(task="celery.map"),
    "timelimit": with_headers(timelimit=[0.001, None]),
    "compressed": with_headers(compression="application/x-bz2"),
    "eta": with_headers(eta="2999-01-01T00:00:00+00:00"),
    "far expires": with_headers(expires="0001-01-01T00:00:00+14:00"),
    "group": with_headers(group="g", chord={"task": "agents.advance"}),
    "retries": with_headers(retries=5),
    "link": with_headers(link=[OTHER]),
    "callbacks": with_body([[], {}, {**NOTHING, "callbacks": [OTHER]}]),
    "chord": with_body([[], {}, {**NOTHING, "chord": OTHER}]),
    "too many arguments": with_body([[1, 2, 3], {}, NOTHING]),
    "named arguments": with_body([[], {"run_id": 1}, NOTHING]),
    "protocol 1": with_body({"task": "config.housekeeping.sing", "id": "x", "args": [], "kwargs": {}}),
    "pickle": lambda message: {
        **message, "content-type": "application/x-python-serialize", "content-encoding": "binary",
        "body": base64.b64encode(pickle.dumps([[], {}, NOTHING])).decode(),
    },
    "a body that is no base64": lambda message: {**message, "body": "\x00"},
    "no delivery tag": with_properties(delivery_tag=None),
    "a priority of another type": with_properties(priority={"a": 1}, delivery_info=7),
}  # fmt: skip


def test_a_forged_message_is_discarded_and_told_and_the_worker_goes_on(celery_worker: Starter, redis_url: str) -> None:
    """One that was no JSON ended the worker and with it the stack; a `timelimit` killed the child of another's run.

    And one whose clock was 40 s ahead dropped each canary as too old, and /readyz said that no worker was there.
    """
    client = redis.Redis.from_url(redis_url)
    client.flushdb()
    worker = celery_worker("-c", "1")
    behind = datetime.now(UTC) - timedelta(minutes=2)  # beat's clock, as a worker whose clock is far ahead sees it
    expires = behind + timedelta(seconds=app.conf.beat_schedule["canary"]["options"]["expires"])
    good = doorbell(client)
    for name, forge in FORGED.items():
        forged = forge(good)
        client.lpush(QUEUE, forged if isinstance(forged, bytes) else json.dumps(forged))
        client.delete(messages.CANARY)
        client.lpush(QUEUE, json.dumps(doorbell(client, expires=expires)))
        until(
            lambda: messages.canary_age(redis_url) < messages.CANARY_LIVES,
            what=f"the worker takes the next message after: {name}\n{worker.log}",
        )
        assert worker.alive, name
    assert worker.log.count("broker.message_discarded") == len(FORGED)
    assert "Unrecoverable" not in worker.log
    assert "WorkerLost" not in worker.log
    assert "Traceback" not in worker.log


def test_a_queue_has_a_list_for_each_urgency_and_the_plain_one_for_most(redis_url: str) -> None:
    client = redis.Redis.from_url(redis_url)
    client.flushdb()
    for priority in (1, 4, 5, 6, 9, None):
        app.send_task("config.housekeeping.sing", queue="test-scratch", ignore_result=True, priority=priority)
    lists = [client.llen(name) for name in ("test-scratch\x06\x160", "test-scratch", "test-scratch\x06\x167")]
    assert lists == [1, 4, 1]


def test_what_this_project_sends_is_taken(redis_url: str) -> None:
    app.loader.import_default_modules()
    client = redis.Redis.from_url(redis_url)
    assert find_fault(doorbell(client, "agents.advance", args=(7,))) == ""
    assert find_fault(doorbell(client, "checkpoints.prune", expires=10)) == ""
    for scheduled in app.conf.beat_schedule.values():
        assert find_fault(doorbell(client, scheduled["task"], **scheduled.get("options", {}))) == ""
