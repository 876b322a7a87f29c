"""Sends one message once. The result is a code that pages show, never an exception."""

from __future__ import annotations

import email.utils
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import httpcore
import httpx
from django.conf import settings

from .connection import NotSent, OutboundConnection
from .targets import target_of

DELIVERED, GONE = "delivered", "gone"
ANSWER = 8192  # bytes of an answer that are read, so that a receiver can finish a short one
AFTERWARDS = 1.0  # seconds for reading them
ALWAYS = {"user-agent": "Holdpoint-Webhooks/1", "content-type": "application/json"}
# Result code -> words for people. Codes like http_404 are put into words elsewhere.
WORDS = {
    DELIVERED: "The receiver took it.",
    GONE: "The receiver answered 410: it accepts no more messages.",
    "bad_address": "The address may not be sent to any more.",
    "not_https": "The address is not encrypted.",
    "dns_failed": "The host name could not be resolved.",
    "private_address": "The host's name leads to a private address.",
    "refused": "Nobody answers there.",
    "tls_failed": "No encrypted connection: the certificate does not fit, or is not trusted.",
    "timeout": "The receiver took too long.",
    "cut": "The connection was cut before an answer came.",
    "bad_answer": "Invalid response.",
    "redirected": "The receiver answered that it is elsewhere; redirects are not followed.",
    "secret_lost": "The key that the webhook's secret was made with is gone.",
    "lost": "The worker that sent it stopped. It is unknown whether the message arrived.",
    "removed": "The webhook was removed.",
}


@dataclass(frozen=True)
class SendResult:
    """The result of sending one message."""

    word: str
    status: int | None = None  # of the answer
    retry_after: float | None = None  # seconds that the receiver asks for
    answer: bytes = b""  # the beginning of its body

    @property
    def delivered(self) -> bool:
        return self.word == DELIVERED


def send(url: str, body: bytes, headers: Mapping[str, str], *, most: int = ANSWER) -> SendResult:
    """POST the message, and judge it by the answer's status alone. Takes no longer than the setting says.

    `most`: bytes of the answer's body that are read, at least.
    """
    target = target_of(url)
    if target is None:
        return SendResult("bad_address")
    line = OutboundConnection(secure=target.secure, deadline=time.monotonic() + settings.HOLDPOINT_WEBHOOKS_TIMEOUT)
    values = {"host": target.authority, "content-length": str(len(body)), **ALWAYS, **headers}
    try:
        with (
            httpcore.ConnectionPool(ssl_context=_trusted(), network_backend=line) as pool,
            pool.stream("POST", url, headers=list(values.items()), content=body) as answer,
        ):
            line.deadline = min(line.deadline, time.monotonic() + AFTERWARDS)
            heard = _hear_out(answer, most)
            return replace(judged(answer.status, answer.headers, now=time.time()), answer=heard)
    except NotSent as reason:
        return SendResult(reason.word)
    except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError) as error:
        return SendResult(_word(error))


def judged(status: int, headers: Sequence[tuple[bytes, bytes]], *, now: float) -> SendResult:
    """Return the result that an answer's status means. Pure."""
    if 200 <= status < 300:
        return SendResult(DELIVERED, status)
    if status == httpx.codes.GONE:
        return SendResult(GONE, status)
    if 300 <= status < 400:
        return SendResult("redirected", status)
    wait = next((value for name, value in headers if name.lower() == b"retry-after"), b"")
    return SendResult(f"http_{status}", status, _seconds(wait.decode("latin-1").strip(), now))


def _seconds(text: str, now: float) -> float | None:
    """Parse Retry-After (RFC 9110, 10.2.3), seconds or a date, into seconds; None for anything else."""
    if text.isascii() and text.isdigit() and len(text) < 10:
        return float(text)
    found = email.utils.parsedate_tz(text)
    try:
        return max(email.utils.mktime_tz(found) - now, 0.0) if found else None
    except (ValueError, OverflowError):
        return None


def _word(error: Exception) -> str:
    if isinstance(error, httpcore.TimeoutException):
        return "timeout"
    if isinstance(error, httpcore.ConnectError):
        return "refused"
    return "bad_answer" if isinstance(error, httpcore.ProtocolError) and not _cut(error) else "cut"


def _cut(error: Exception) -> bool:
    return isinstance(error, httpcore.RemoteProtocolError) and "disconnected" in str(error)


def _hear_out(answer: httpcore.Response, most: int) -> bytes:
    """Read the beginning of the answer's body, ignoring errors: the status counts."""
    heard = bytearray()
    try:
        for part in answer.iter_stream():
            heard += part
            if len(heard) >= most:
                break
    except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError):
        pass
    return bytes(heard)


@cache
def _trusted() -> ssl.SSLContext:
    """Return a context that trusts the usual certificates and those that a setting adds. No environment, no proxy."""
    context = httpx.create_ssl_context(trust_env=False)
    if settings.HOLDPOINT_WEBHOOKS_CA:
        context.load_verify_locations(cafile=settings.HOLDPOINT_WEBHOOKS_CA)
    return context
