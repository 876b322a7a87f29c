"""Turns what came of sending into the receipt that notices are kept by. Pure."""

from __future__ import annotations

import httpx

from approvals.notifications.channel import UNREACHED, Receipt, Result
from approvals.outbound.sending import SendResult

# Many hosts take a channel's messages. That one is not reached is no fault of the channel, which would rest for all.
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
    word = f"{ITS}{sent.word}" if sent.word in UNREACHED else sent.word
    return Receipt(Result.LATER, word, retry_after=sent.retry_after)
