"""Counts requests a minute in Redis, for all web processes together.

For a sender who comes again and again within a second a process takes more and more requests at once, and gives them
out for a second, so that not each waits for Redis; those that it did not give out count as used.

While Redis is away each process counts by itself, so that nobody is held up, and nobody let through without a bound,
for want of a counter. A Redis that does not answer within a few hundredths of a second is not asked again for a second.
"""

from __future__ import annotations

import math
import time
from functools import cache
from typing import NamedTuple

from django.conf import settings
from limits import RateLimitItem, RateLimitItemPerMinute
from limits.errors import StorageError
from limits.storage import MemoryStorage, RedisStorage
from limits.strategies import SlidingWindowCounterRateLimiter
from redis.backoff import NoBackoff
from redis.retry import Retry
from structlog import get_logger

MINUTE = 60
TIMEOUT = 0.015  # seconds, to connect and for each answer
PAUSE_AFTER_FAILURE = 1.0
log = get_logger()
SHARE = 1000  # a process takes at most one part in so many of a minute's requests at once
LASTS = 1.0  # seconds for which a process gives them out
MANY = 10_000  # senders in the memory of a process
_apart_until = 0.0
_taken: dict[tuple[str, str], Taken] = {}


class Rate(NamedTuple):
    """The state of a limit after one more request."""

    name: str  # of the counter
    within: bool  # whether the request is within the limit
    most: int  # a minute
    remaining: int
    seconds: int  # until more are left

    @property
    def headers(self) -> dict[str, str]:
        """Return the RateLimit header fields of the IETF's draft."""
        return {
            "RateLimit-Policy": f'"{self.name}";q={self.most};w={MINUTE}',
            "RateLimit": f'"{self.name}";r={self.remaining};t={self.seconds}',
        }


class Taken:
    """The requests that a process took from the limit and may still give out."""

    def __init__(self, rate: Rate, times: int, until: float) -> None:
        self.rate, self.times, self.until = rate, times, until
        self._rest = iter(range(times - 1, -1, -1))  # next() of it is atomic between threads

    def take(self) -> Rate | None:
        """Return the state of the limit after one of them; None where none is left."""
        rest = next(self._rest, None) if time.monotonic() < self.until else None
        return None if rest is None else self.rate._replace(remaining=self.rate.remaining + rest)


def count(name: str, who: str, *, most: int, times: int = 1) -> Rate:
    """Count one request, or several, of `most` a minute. Never raises, and never waits for long."""
    if times > 1:
        return _count(name, who, most, times)
    taken = _taken.get((name, who))
    if taken is not None and taken.rate.most == most and (row := taken.take()):
        return row
    busy = taken is not None and time.monotonic() < taken.until
    times = max(min(2 * taken.times, most // SHARE), 1) if taken is not None and busy else 1
    rate = _count(name, who, most, times)
    if times > 1 and not rate.within:
        return _count(name, who, most, 1)  # fewer than `times` may be left
    if len(_taken) >= MANY:
        _taken.clear()
    _taken[name, who] = Taken(rate, times, time.monotonic() + LASTS)
    return _taken[name, who].take() or rate


def _count(name: str, who: str, most: int, times: int) -> Rate:
    global _apart_until
    item = RateLimitItemPerMinute(most)
    if time.monotonic() >= _apart_until:
        try:
            return _counted(_together(), item, name, who, times)
        except StorageError as error:
            _apart_until = time.monotonic() + PAUSE_AFTER_FAILURE
            log.warning("rates.apart", error=str(error))
    return _counted(_apart(), item, name, who, times)


def _counted(limiter: SlidingWindowCounterRateLimiter, item: RateLimitItem, name: str, who: str, times: int) -> Rate:
    within = limiter.hit(item, name, who, cost=times)
    stands = limiter.get_window_stats(item, name, who)
    seconds = max(math.ceil(stands.reset_time - time.time()), 1)
    return Rate(name, within, item.amount, stands.remaining if within else 0, min(seconds, MINUTE))


@cache
def _together() -> SlidingWindowCounterRateLimiter:
    storage = RedisStorage(
        settings.REDIS_URL, key_prefix="holdpoint.rates", wrap_exceptions=True, socket_timeout=TIMEOUT,
        socket_connect_timeout=TIMEOUT, retry=Retry(NoBackoff(), 0),  # type: ignore[arg-type]
    )  # fmt: skip
    return SlidingWindowCounterRateLimiter(storage)


@cache
def _apart() -> SlidingWindowCounterRateLimiter:
    return SlidingWindowCounterRateLimiter(MemoryStorage())
