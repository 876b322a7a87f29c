"""Counts the messages that wait for workers in Redis."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import redis
from django.conf import settings

TIMEOUT = 0.5  # seconds, to connect and to be answered


def waiting(queues: Iterable[str]) -> dict[str, int]:
    """Count the messages in each of these queues; 0 where a key of another type has its name.

    Raises redis.RedisError where Redis does not answer.
    """
    names = list(dict.fromkeys(queues))
    pipe = client().pipeline(transaction=False)
    for name in names:
        pipe.llen(name)
    lengths = pipe.execute(raise_on_error=False) if names else []
    return {name: length if isinstance(length, int) else 0 for name, length in zip(names, lengths, strict=True)}


def client() -> redis.Redis:
    """Return this process's Redis client, which times out after half a second."""
    return _client(settings.REDIS_URL)


@cache
def _client(url: str) -> redis.Redis:
    return redis.Redis.from_url(url, socket_timeout=TIMEOUT, socket_connect_timeout=TIMEOUT)
