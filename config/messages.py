"""Celery messages by Redis: the transport, which passes doorbells only, the pool of threads, and the canary.

Anybody who reaches Redis can write to it, and Celery trusts what it finds there: a message that is not JSON ends
the worker, a `timelimit` kills the child that works on another's run, `callbacks` and `chord` send further messages. A
doorbell needs none of that: it is the name of a task of Holdpoint's, and at most its numbers. Everything else is
dropped when it is read, and logged. Nothing is lost by that: the sweeper rings again for what is due.

The canary is the time at which a worker last took a message, kept in Redis for a short time.
"""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Mapping
from concurrent.futures import Future
from datetime import datetime
from queue import Empty
from typing import Any

import redis
import structlog
from celery import current_app
from celery.concurrency import thread
from kombu.transport import redis as kombu_redis
from redis.exceptions import ResponseError

from agents.ringing import doorbell
from checkpoints.models.run import NORMAL

# Headers that no doorbell sets: each lets a message do more than ring. `timelimit` comes as two empty values.
UNUSED = (
    "compression", "eta", "group", "group_index", "retries", "shadow", "chord", "stamps", "stamped_headers", "link",
    "callbacks",
)  # fmt: skip
EMBEDDED = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}
CANARY = "holdpoint.canary"
CANARY_LIVES = 60  # seconds for which it is known
log = structlog.get_logger()


class Channel(kombu_redis.Channel):
    """Kombu's channel, which drops messages that cannot be read: they are gone from the queue already.

    It keeps its client as long as its pool: Kombu makes one for each message, which takes longer than sending it.
    """

    priority_steps = doorbell.STEPS
    default_priority = NORMAL
    _kept: Any = None

    def _create_client(self, asynchronous: bool = False) -> Any:
        if asynchronous:
            return super()._create_client(asynchronous=True)  # type: ignore[misc]
        if self._kept is None or self._kept.connection_pool is not self.pool:
            self._kept = super()._create_client()  # type: ignore[misc]
        return self._kept

    def _q_for_pri(self, queue: str, pri: int) -> str:
        return doorbell.key(queue, pri)

    def drop_other_types(self, error: ResponseError) -> None:
        """Delete keys of another type that have the names of queues. Raises `error` where it has another cause."""
        if "WRONGTYPE" not in str(error):
            raise error
        name, steps = self._q_for_pri, self.priority_steps
        names = [name(queue, step) for queue in self.active_queues for step in steps]
        with self.conn_or_acquire() as client:
            for queue in names:
                if client.type(queue) not in (b"list", b"none"):
                    client.delete(queue)
                    log_discarded(str(queue), "the key is of another type")

    def _brpop_read(self, **options: Any) -> Any:
        expected: tuple[type[BaseException], ...] = (
            Empty,
            *self.connection.connection_errors,
            *self.connection.channel_errors,
        )
        try:
            return super()._brpop_read(**options)  # type: ignore[misc]
        except ResponseError as error:
            self.drop_other_types(error)
            return True
        except expected:
            raise
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
            log_discarded("unreadable", repr(error))
            return True


class Transport(kombu_redis.Transport):
    """Kombu's transport, which passes on doorbells only."""

    Channel = Channel

    def _deliver(self, message: Any, queue: str | None) -> None:
        try:
            fault = find_fault(message)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            fault = repr(error)
        if fault:
            log_discarded(str(queue), fault)
        else:
            super()._deliver(message, queue)


def log_discarded(queue: str, why: str) -> None:
    """Log that a message was dropped; operators may set an alarm on this line."""
    log.error("broker.message_discarded", queue=queue, why=why[:300])


def find_fault(message: Mapping[str, Any]) -> str:
    """Say why a message is no doorbell; "" where it is one. Raises where parts of it are missing."""
    headers, properties = message["headers"], message["properties"]
    delivered, task = properties["delivery_info"], current_app.tasks.get(headers["task"])
    texts = (properties["delivery_tag"], delivered["exchange"], delivered["routing_key"], headers["id"])
    if not all(isinstance(text, str) for text in texts):
        return "it does not say where it is from"
    if task is None or task.name.startswith("celery."):
        return f"there is no task {headers['task']!r:.100}"
    if set_ := [name for name in UNUSED if headers.get(name)]:
        return f"it sets {', '.join(set_)}"
    if headers.get("timelimit") not in (None, [None, None]):
        return "it sets timelimit"
    if (expires := headers.get("expires")) is not None and not 2000 < datetime.fromisoformat(expires).year < 9000:
        return "it expires at no time that there is"
    kind = (message["content-type"], message["content-encoding"], properties["body_encoding"])
    if kind != ("application/json", "utf-8", "base64"):
        return f"it is not JSON but {kind!r:.100}"
    args, kwargs, embedded = json.loads(base64.b64decode(message["body"], validate=True))
    if kwargs or not isinstance(kwargs, dict) or embedded != EMBEDDED or not isinstance(args, list):
        return "it carries more than numbers"
    if not all(type(argument) is int and 0 < argument < 2**63 for argument in args):
        return "it carries something else than numbers"
    task.__header__(*args)  # type: ignore[attr-defined]  # raises TypeError where the task takes others
    return ""


class ThreadPool(thread.TaskPool):
    """The pool `threads`, which tells the worker's loop at once when a thread is free.

    A worker takes no message while all are busy, and its loop would look again after a second.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.freed, self.told = os.pipe()
        os.set_blocking(self.freed, False)
        os.set_blocking(self.told, False)

    def register_with_event_loop(self, loop: Any) -> None:
        """Have the loop go round whenever a thread is free."""
        loop.add_reader(self.freed, os.read, self.freed, 4096)

    def on_apply(self, *args: Any, **options: Any) -> Any:
        """Have a thread run a task."""
        result: Any = super().on_apply(*args, **options)
        result.f.add_done_callback(self._tell)
        return result

    def _tell(self, ended: Future[Any]) -> None:
        try:
            os.write(self.told, b".")
        except BlockingIOError:  # full: the loop goes round anyway
            return


def record_canary(url: str) -> None:
    """Record that a worker took a message now."""
    with connect_redis(url) as connection:
        connection.set(CANARY, f"{time.time():.3f}", ex=CANARY_LIVES)


def canary_age(url: str) -> float:
    """Return the seconds since a worker took a message, by Redis's clock; CANARY_LIVES if it was longer ago.

    Raises redis.RedisError.
    """
    with connect_redis(url) as connection:
        left = int(connection.pttl(CANARY))
    return CANARY_LIVES - max(left, 0) / 1000


def connect_redis(url: str) -> redis.Redis:
    """Return a Redis client that gives up soon when no server answers."""
    return redis.Redis.from_url(url, socket_timeout=2, socket_connect_timeout=2)
