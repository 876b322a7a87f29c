"""How often a minute somebody comes, counted in Redis by all web processes together.

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
_apart_until = 0.0


class Rate(NamedTuple):
    """Where somebody stands after one more time."""

    name: str  # of what is counted
    within: bool  # whether it was one of the times that they have
    most: int  # a minute
    left: int
    seconds: int  # until more are left

    @property
    def headers(self) -> dict[str, str]:
        """As the IETF's draft of RateLimit header fields has them."""
        return {
            "RateLimit-Policy": f'"{self.name}";q={self.most};w={MINUTE}',
            "RateLimit": f'"{self.name}";r={self.left};t={self.seconds}',
        }


def count(name: str, who: str, *, most: int) -> Rate:
    """Count one time more, of `most` a minute. Never raises, and never waits for long."""
    global _apart_until
    item = RateLimitItemPerMinute(most)
    if time.monotonic() >= _apart_until:
        try:
            return _counted(_together(), item, name, who)
        except StorageError as error:
            _apart_until = time.monotonic() + PAUSE_AFTER_FAILURE
            log.warning("rates.apart", error=str(error))
    return _counted(_apart(), item, name, who)


def _counted(limiter: SlidingWindowCounterRateLimiter, item: RateLimitItem, name: str, who: str) -> Rate:
    within = limiter.hit(item, name, who)
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
