"""Rate limits: for a person or a token that was let in, and for an address that sends invalid tokens.

Such an address is blocked for a while for tokens that have not worked in this process: looking one up costs a read of
the database. A token that works goes on working, whatever its neighbours send.
"""

from __future__ import annotations

import time
from hashlib import blake2b
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from ninja.errors import Throttled
from ninja.throttling import BaseThrottle

from agents.access import address_of

from . import problem_details, rate_counter
from .auth import token_of, who_asks
from .rate_counter import Rate
from .waiting import AGAIN

HEADERS: dict[str, Any] = {
    "Retry-After": {"schema": {"type": "integer"}, "description": "How many seconds to wait before the next request."},
    "RateLimit": {"schema": {"type": "string"}, "description": "`r` requests are left for the next `t` seconds."},
    "RateLimit-Policy": {"schema": {"type": "string"}, "description": "`q` requests are allowed in `w` seconds."},
}  # fmt: skip
REMEMBERED = 10_000  # addresses, and tokens
LATELY = 3600.0  # seconds for which a valid token is remembered
_shut: dict[str, float] = {}  # by address, until when
_known: dict[bytes, float] = {}  # by the digest of what was sent, when


class Throttle(BaseThrottle):
    """A limit of requests a minute for a person or a token."""

    def allow_request(self, request: HttpRequest) -> bool:
        """Count the request, and keep the rate on it. A request that waits is asked again, and counts once."""
        if getattr(request, "scope", {}).get(AGAIN):
            return True
        return _count(request).within


class AddressThrottle(BaseThrottle):
    """A limit of requests a minute for an address, where nobody has to be signed in."""

    def __init__(self, name: str, most: int) -> None:
        self.name, self.most = name, most

    def allow_request(self, request: HttpRequest) -> bool:
        """Count the request, and keep the rate on it."""
        rate = rate_counter.count(self.name, address_of(request), most=self.most)
        request.rate = rate  # type: ignore[attr-defined]
        return rate.within


def count_more(request: HttpRequest, times: int) -> None:
    """Count so many requests of the sender besides the one that was counted. Raises Throttled."""
    if times and not _count(request, times).within:
        raise Throttled(wait=None)


def refused(request: HttpRequest) -> HttpResponse | None:
    """Answer 429 to an unknown token from a blocked address, without looking it up."""
    sent = request.headers.get("Authorization")
    until = _shut.get(address_of(request), 0.0) if sent else 0.0
    left = until - time.monotonic()
    if not sent or left <= 0 or time.monotonic() - _known.get(_digest(sent), -LATELY) < LATELY:
        return None
    return _shut_out(request, Rate("failures", False, settings.HOLDPOINT_API_FAILURES, 0, int(left) + 1))


def noted(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Return the answer with its rate headers; 429 instead for one invalid token too many."""
    if sent := request.headers.get("Authorization"):
        if token_of(request):
            _keep(_known, _digest(sent), time.monotonic())
            if response.status_code == 403 and not hasattr(request, "rate") and not _count(request).within:
                return too_many(request)  # a missing scope is found before the request is counted
        elif response.status_code == 401:
            return _failed(request, sent) or response
    rate: Rate | None = getattr(request, "rate", None)
    for name, value in rate.headers.items() if rate else ():
        response[name] = value
    return response


def too_many(request: HttpRequest, error: Throttled | None = None) -> HttpResponse:
    """Answer 429 to a person, a token or an address over the limit."""
    rate: Rate = request.rate  # type: ignore[attr-defined]
    whose = "with this token" if token_of(request) else "with this account"
    whose = whose if rate.name == "requests" else "of this kind from your address"
    words = f"More than {rate.most:,} requests a minute {whose}. The next is answered in {rate.seconds} s."
    return _refuse_request(request, rate, words)


def _count(request: HttpRequest, times: int = 1) -> Rate:
    rate = rate_counter.count("requests", who_asks(request), most=settings.HOLDPOINT_API_RATE, times=times)
    request.rate = rate  # type: ignore[attr-defined]
    return rate


def _failed(request: HttpRequest, sent: str) -> HttpResponse | None:
    _known.pop(_digest(sent), None)
    address = address_of(request)
    rate = rate_counter.count("failures", address, most=settings.HOLDPOINT_API_FAILURES)
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
    response = problem_details.answer_problem(request, 429, detail)
    response["Retry-After"] = str(rate.seconds)
    for name, value in rate.headers.items():
        response[name] = value
    return response


def _digest(sent: str) -> bytes:
    return blake2b(sent.encode(errors="surrogatepass"), digest_size=16).digest()


def _keep(memory: dict[Any, float], key: Any, value: float) -> None:
    if len(memory) >= REMEMBERED:
        memory.clear()
    memory[key] = value
