"""Classifies an exception of an effect: provably not done, or unknown.

It also classifies the outcome of an effect's HTTP call: done, provably not done, or unknown.

A refusal (4xx) and a connection that was never made are failures; after a timeout, a connection cut after sending or a
5xx, the work may have been done. RFC 9110 §9.2.2: only an idempotent request may be repeated blindly.
"""

from __future__ import annotations

import ssl
from functools import cache

import httpx

from agents.errors import EffectFailed, EffectUnknown, Retry, StepFailed, UpcastFailed
from agents.steps import execute
from checkpoints.values.characters import one_line

NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
NEVER_WILL_BE = (httpx.UnsupportedProtocol, httpx.InvalidURL, httpx.LocalProtocolError)
TOO_SOON = 429  # refused for now: the same request may be sent again later
GAVE_UP_READING = 408  # the server may have read enough to act


@cache
def trusted() -> ssl.SSLContext:
    """Return the TLS context with the trusted certificates: made once, since that takes longer than a call."""
    return httpx.create_ssl_context(trust_env=False)


def classify(error: Exception) -> EffectFailed | EffectUnknown | None:
    """Return the error of the effect that `error` means; None where it is no HTTP error."""
    if isinstance(error, httpx.HTTPStatusError):
        return of_status(error.response)
    if isinstance(error, NEVER_SENT):
        return EffectFailed(f"not sent: {error!r}", retry=True)
    if isinstance(error, NEVER_WILL_BE):
        return EffectFailed(f"not sent: {error!r}")
    if isinstance(error, httpx.HTTPError):
        return EffectUnknown(f"no answer: {error!r}")
    return None


def of_status(response: httpx.Response) -> EffectFailed | EffectUnknown:
    """Return the error of the effect that a response other than 2xx means."""
    said = f"HTTP {response.status_code}: {response.text[:200]}"
    if 400 <= response.status_code < 500 and response.status_code != GAVE_UP_READING:
        return EffectFailed(said, retry=response.status_code == TOO_SOON)
    return EffectUnknown(said)


def send(client: httpx.Client, request: httpx.Request) -> httpx.Response:
    """Send an effect's request; returns a 2xx response, raises EffectFailed or EffectUnknown."""
    try:
        response = client.send(request)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise classify(error) or EffectUnknown(repr(error)) from error
    if response.is_success:
        return response
    raise of_status(response)


End = EffectFailed | EffectUnknown


def of(error: BaseException, doubt: str = "") -> End:
    """Classify the error: unknown unless it is known to be a failure.

    A failure is about this attempt alone: with an earlier attempt under the key in `doubt`, the effect stays unknown.
    """
    found = _found(error)
    if isinstance(found, EffectFailed) and doubt:
        return EffectUnknown(f"{doubt} Sent again under its key: {found}")
    return found


def said(end: End) -> str:
    """Return the message, which anybody may have worded, as one line that fits a row and a card."""
    return one_line(str(end), 500)


def _found(error: BaseException) -> End:
    if isinstance(error, (EffectFailed, EffectUnknown)):
        return error
    if isinstance(error, Retry):
        return EffectFailed(str(error), retry=True)
    if isinstance(error, (StepFailed, UpcastFailed)):  # with UpcastFailed nothing was even called
        return EffectFailed(str(error))
    found = classify(error) if isinstance(error, Exception) else None
    return found or EffectUnknown(execute.said(error))
