"""The canary: the time at which a worker last took a message, kept in Redis for a short time."""

from __future__ import annotations

import time

import redis

KEY = "holdpoint.canary"
LIVES = 60  # seconds for which it is known


def sing(url: str) -> None:
    """Record that a worker took a message now."""
    with client(url) as connection:
        connection.set(KEY, f"{time.time():.3f}", ex=LIVES)


def age(url: str) -> float:
    """Return the seconds since a worker took a message, by Redis's clock; LIVES if it was longer ago.

    Raises redis.RedisError.
    """
    with client(url) as connection:
        left = int(connection.pttl(KEY))
    return LIVES - max(left, 0) / 1000


def client(url: str) -> redis.Redis:
    """Return a Redis client that gives up soon when no server answers."""
    return redis.Redis.from_url(url, socket_timeout=2, socket_connect_timeout=2)
