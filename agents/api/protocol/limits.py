"""Limits: the size of a body, and the rate of a person, a token, and an address that sends invalid tokens.

Such an address is blocked for a while for tokens that have not worked in this process: looking one up costs a read of
the database. A token that works goes on working, whatever its neighbours send.

Requests a minute are counted in Redis, for all web processes together. For a sender who comes again and again within a
second a process takes more and more requests at once, and gives them out for a second, so that not each waits for
Redis; those that it did not give out count as used. While Redis is away each process counts by itself, so that nobody
is held up, and nobody let through without a bound, for want of a counter. A Redis that does not answer within a few
hundredths of a second is not asked again for a second.
"""

from __future__ import annotations

import math
import time
from functools import cache
from hashlib import blake2b
from typing import Any, NamedTuple

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from limits import RateLimitItem, RateLimitItemPerMinute
from limits.errors import StorageError
from limits.storage import MemoryStorage, RedisStorage
from limits.strategies import SlidingWindowCounterRateLimiter
from ninja.errors import Throttled
from ninja.throttling import BaseThrottle
from redis.backoff import NoBackoff
from redis.retry import Retry
from structlog import get_logger

from agents.access import address_of
from agents.api.protocol import problems
from agents.api.protocol.auth import token_of, who_asks
from agents.api.protocol.problems import MEDIA_TYPE, encode_problem
from agents.api.protocol.waiting import AGAIN

MINUTE = 60
TIMEOUT = 0.015  # seconds, to connect and for each answer
PAUSE_AFTER_FAILURE = 1.0
log = get_logger()
SHARE = 1000  # a process takes at most one part in so many of a minute's requests at once
LASTS = 1.0  # seconds for which a process gives them out
_apart_until = 0.0
_taken: dict[tuple[str, str], Taken] = {}
HEADERS: dict[str, Any] = {
    "Retry-After": {"schema": {"type": "integer"}, "description": "How many seconds to wait before the next request."},
    "RateLimit": {"schema": {"type": "string"}, "description": "`r` requests are left for the next `t` seconds."},
    "RateLimit-Policy": {"schema": {"type": "string"}, "description": "`q` requests are allowed in `w` seconds."},
}  # fmt: skip
REMEMBERED = 10_000  # addresses, tokens, and senders
LATELY = 3600.0  # seconds for which a valid token is remembered


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


def count_request(name: str, who: str, *, most: int, times: int = 1) -> Rate:
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
    taken = Taken(rate, times, time.monotonic() + LASTS)
    _keep(_taken, (name, who), taken)
    return taken.take() or rate


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


def encode_too_large(path: str) -> bytes:
    """Return the problem document of a 413."""
    most = settings.HOLDPOINT_API_BODY_LIMIT
    words = f"A body has at most {most:,} bytes here. Send a smaller one, or have HOLDPOINT_API_BODY_LIMIT raised."
    return encode_problem(path, 413, words)


def refuse_large_body(request: HttpRequest) -> HttpResponse | None:
    """Read the body; return 413 if it is too long."""
    most = settings.HOLDPOINT_API_BODY_LIMIT
    body = request.read(most + 1)
    if len(body) > most:
        return HttpResponse(encode_too_large(request.path), status=413, content_type=MEDIA_TYPE)
    request._body = body
    return None


_shut: dict[str, float] = {}  # by address, until when
_known: dict[bytes, float] = {}  # by the digest of what was sent, when


class Throttle(BaseThrottle):
    """A limit of requests a minute for a person or a token."""

    def allow_request(self, request: HttpRequest) -> bool:
        """Count the request, and keep the rate on it. A request that waits is asked again, and counts once."""
        return bool(getattr(request, "scope", {}).get(AGAIN)) or _count_sender(request).within


class AddressThrottle(BaseThrottle):
    """A limit of requests a minute for an address, where nobody has to be signed in."""

    def __init__(self, name: str, most: int) -> None:
        self.name, self.most = name, most

    def allow_request(self, request: HttpRequest) -> bool:
        """Count the request, and keep the rate on it."""
        rate = count_request(self.name, address_of(request), most=self.most)
        request.rate = rate  # type: ignore[attr-defined]
        return rate.within


def count_more(request: HttpRequest, times: int) -> None:
    """Count so many requests of the sender besides the one that was counted. Raises Throttled."""
    if times and not _count_sender(request, times).within:
        raise Throttled(wait=None)


def refuse_unknown_token(request: HttpRequest) -> HttpResponse | None:
    """Answer 429 to an unknown token from a blocked address, without looking it up."""
    sent = request.headers.get("Authorization")
    until = _shut.get(address_of(request), 0.0) if sent else 0.0
    left = until - time.monotonic()
    if not sent or left <= 0 or time.monotonic() - _known.get(_digest(sent), -LATELY) < LATELY:
        return None
    return _shut_out(request, Rate("failures", False, settings.HOLDPOINT_API_FAILURES, 0, int(left) + 1))


def note_rate(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Return the answer with its rate headers; 429 instead for one invalid token too many."""
    if sent := request.headers.get("Authorization"):
        if token_of(request):
            _keep(_known, _digest(sent), time.monotonic())
            if response.status_code == 403 and not hasattr(request, "rate") and not _count_sender(request).within:
                response = answer_too_many(request)  # a missing scope is found before the request is counted
        elif response.status_code == 401:
            response = _failed(request, sent) or response
    rate: Rate | None = getattr(request, "rate", None)
    for name, value in rate.headers.items() if rate else ():
        response[name] = value
    return response


def answer_too_many(request: HttpRequest, error: Throttled | None = None) -> HttpResponse:
    """Answer 429 to a person, a token or an address over the limit."""
    rate: Rate = request.rate  # type: ignore[attr-defined]
    whose = "with this token" if token_of(request) else "with this account"
    whose = whose if rate.name == "requests" else "of this kind from your address"
    words = f"More than {rate.most:,} requests a minute {whose}. The next is answered in {rate.seconds} s."
    return _refuse_request(request, rate, words)


def _count_sender(request: HttpRequest, times: int = 1) -> Rate:
    rate = count_request("requests", who_asks(request), most=settings.HOLDPOINT_API_RATE, times=times)
    request.rate = rate  # type: ignore[attr-defined]
    return rate


def _failed(request: HttpRequest, sent: str) -> HttpResponse | None:
    _known.pop(_digest(sent), None)
    address = address_of(request)
    rate = count_request("failures", address, most=settings.HOLDPOINT_API_FAILURES)
    if rate.within:
        return None
    _keep(_shut, address, time.monotonic() + rate.seconds)
    return _shut_out(request, rate)


def _shut_out(request: HttpRequest, rate: Rate) -> HttpResponse:
    words = (
        f"Your address sent more than {rate.most:,} invalid tokens in a minute, so no unknown one is "
        f"looked at for {rate.seconds} s. Then send one that is good: yours are listed at /tokens/."
    )
    return _refuse_request(request, rate, words)


def _refuse_request(request: HttpRequest, rate: Rate, detail: str) -> HttpResponse:
    request.rate = rate  # type: ignore[attr-defined]
    return problems.answer_problem(request, 429, detail, headers={"Retry-After": str(rate.seconds)})


def _digest(sent: str) -> bytes:
    return blake2b(sent.encode(errors="surrogatepass"), digest_size=16).digest()


def _keep(memory: dict[Any, Any], key: Any, value: Any) -> None:
    if len(memory) >= REMEMBERED:
        memory.clear()
    memory[key] = value
