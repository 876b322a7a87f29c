"""Checks messages before Celery gets them: one that is no doorbell is discarded and logged.

Anybody who reaches Redis can write to it, and Celery trusts what it finds there: a message that is not JSON ends
the worker, a `timelimit` kills the child that works on another's run, `callbacks` and `chord` send further messages. A
doorbell needs none of that: it is the name of a task of Holdpoint's, and at most its numbers. Everything else is
dropped when it is read. Nothing is lost by that: the sweeper rings again for what is due.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import datetime
from queue import Empty
from typing import Any

import structlog
from celery import current_app
from kombu.transport import redis
from redis.exceptions import ResponseError

from agents.ringing import queues
from checkpoints.models.run import NORMAL

# Headers that no doorbell sets: each lets a message do more than ring. `timelimit` comes as two empty values.
UNUSED = (
    "compression", "eta", "group", "group_index", "retries", "shadow", "chord", "stamps", "stamped_headers", "link",
    "callbacks",
)  # fmt: skip
EMBEDDED = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}
log = structlog.get_logger()


class Channel(redis.Channel):
    """Kombu's channel, which drops messages that cannot be read: they are gone from the queue already.

    It keeps its client as long as its pool: Kombu makes one for each message, which takes longer than sending it.
    """

    priority_steps = queues.STEPS
    default_priority = NORMAL
    _kept: Any = None

    def _create_client(self, asynchronous: bool = False) -> Any:
        if asynchronous:
            return super()._create_client(asynchronous=True)  # type: ignore[misc]
        if self._kept is None or self._kept.connection_pool is not self.pool:
            self._kept = super()._create_client()  # type: ignore[misc]
        return self._kept

    def _q_for_pri(self, queue: str, pri: int) -> str:
        return queues.key(queue, pri)

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
                    discarded(str(queue), "the key is of another type")

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
            discarded("unreadable", repr(error))
            return True


class Transport(redis.Transport):
    """Kombu's transport, which passes on doorbells only."""

    Channel = Channel

    def _deliver(self, message: Any, queue: str | None) -> None:
        try:
            fault = fault_of(message)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            fault = repr(error)
        if fault:
            discarded(str(queue), fault)
        else:
            super()._deliver(message, queue)


def discarded(queue: str, why: str) -> None:
    """Log that a message was dropped; operators may set an alarm on this line."""
    log.error("broker.message_discarded", queue=queue, why=why[:300])


def fault_of(message: Mapping[str, Any]) -> str:
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
