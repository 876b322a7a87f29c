"""The lists of messages in Redis: one for each queue and urgency, and how many messages wait in them.

A worker reads the urgent lists of all its queues first, then the others, then those that can wait. The list of the
priorities in the middle has the queue's own name, which processes of an earlier release use for all messages.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable
from functools import cache

import redis
from django.conf import settings

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
