"""Turns what came of sending into the receipt that notices are kept by. Pure."""

from __future__ import annotations

from dataclasses import replace

import httpx

from approvals.notifications.channel import UNREACHED, Receipt, Result
from approvals.outbound.sending import SendResult

ITS = "host_"
# The message itself is not taken: it would not be later either.
NEVER = frozenset({httpx.codes.BAD_REQUEST, httpx.codes.REQUEST_ENTITY_TOO_LARGE, httpx.codes.UNPROCESSABLE_ENTITY})
# The address was allowed when it was entered; the settings or the name's owner changed that.
FORBIDDEN = frozenset({"bad_address", "not_https", "private_address"})


def receipt(sent: SendResult, *, gone: frozenset[int] = frozenset({410}), reference: str = "") -> Receipt:
    """Return the receipt of one request. `gone`: the statuses by which this service says that an address is no more."""
    if sent.delivered:
        return Receipt(Result.SENT, reference=reference)
    if sent.status in gone:
        return Receipt(Result.GONE, f"http_{sent.status}")
    if sent.status in NEVER or sent.word in FORBIDDEN:
        return Receipt(Result.REFUSED, sent.word)
    return Receipt(Result.LATER, sent.word, retry_after=sent.retry_after)


def of_one_host(came: Receipt) -> Receipt:
    """Return the receipt of an address whose host somebody chose: that it is not reached keeps no other one waiting.

    The channel would rest otherwise, for everybody.
    """
    return replace(came, word=f"{ITS}{came.word}") if came.word in UNREACHED else came
