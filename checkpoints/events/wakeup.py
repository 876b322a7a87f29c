"""Wake-ups ("rings") over Redis: they only ask readers to read events; permissions are checked where events are read.

A lost ring delays a page by one second. A dead Redis may cost a writer no more than one short timeout, so after a
failure nothing is sent for a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any

import redis
import redis.asyncio
import structlog
from django.conf import settings
from django.db import connection, transaction
from redis.backoff import NoBackoff
from redis.retry import Retry

TIMEOUT = 0.04  # seconds, to connect and to publish
PAUSE_AFTER_FAILURE = 1.0
STEP_PAUSE = 0.1
AGAIN = 1.0  # seconds before a lost connection is tried again

log = structlog.get_logger()
_lock = threading.Lock()
_rung: dict[int, float] = {}
_quiet_until = 0.0


@cache
def _client() -> redis.Redis:
    return redis.Redis.from_url(
        settings.REDIS_URL, socket_timeout=TIMEOUT, socket_connect_timeout=TIMEOUT, retry=Retry(NoBackoff(), 0)
    )


def channel() -> str:
    """Return the channel's name. Publishing ignores Redis's database numbers, so the name contains the number."""
    number = _client().get_connection_kwargs().get("db") or 0
    return f"{getattr(settings, 'HOLDPOINT_RING_PREFIX', 'holdpoint')}.{number}.ring"


def ring() -> None:
    """Wake the tailers. Never raises."""
    publish(channel(), "")


def ring_after_commit() -> None:
    """Wake the tailers once, after the commit and what was registered to follow it; at once outside a transaction."""
    if connection.in_atomic_block:
        with contextlib.suppress(ValueError):  # not registered yet
            connection.run_on_commit.remove((set(connection.savepoint_ids), ring, False))  # type: ignore[arg-type]
    transaction.on_commit(ring)


def publish(to: str, message: str) -> None:
    """Publish a message that carries no authority and may be lost. Never raises."""
    global _quiet_until
    if time.monotonic() < _quiet_until:
        return
    try:
        _client().publish(to, message)
    except (redis.RedisError, OSError):
        _quiet_until = time.monotonic() + PAUSE_AFTER_FAILURE


def ring_step(run_id: int) -> None:
    """Wake the tailers for a step of this run, at most every 100 ms."""
    now = time.monotonic()
    with _lock:
        if now - _rung.get(run_id, -STEP_PAUSE) < STEP_PAUSE:
            return
        if len(_rung) > 10_000:
            _rung.clear()
        _rung[run_id] = now
    ring()


async def listen(*channels: str, hear: Callable[[dict[str, Any]], Awaitable[None]], deaf: str) -> None:
    """Pass on each message of these channels, until cancelled; reconnect after each loss, logged as `deaf`."""
    while True:
        client = redis.asyncio.Redis.from_url(settings.REDIS_URL, socket_connect_timeout=1)
        try:
            async with client.pubsub() as listened:
                await listened.subscribe(*channels)
                async for message in listened.listen():
                    await hear(message)
        except (redis.RedisError, OSError) as error:
            log.info(deaf, error=str(error))
        finally:
            with contextlib.suppress(redis.RedisError, OSError):
                await client.aclose()
        await asyncio.sleep(AGAIN)
