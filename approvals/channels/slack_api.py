"""Calls Slack: its Web API with the bot's token, and incoming webhooks. What Slack answers is a receipt.

A call that Slack refuses for its rate (429, Retry-After) is not made again before the time that Slack asks for: within
one session the same call is answered by its own pause.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urljoin

from django.conf import settings

from approvals.notifications.channel import Receipt, Result
from approvals.outbound import sending

from .receipts import of_one_host, receipt
from .slack_errors import refused

ANSWER = 256 * 1024  # bytes; Slack sends the whole message back
HOOK = "hook"  # the reference of what cannot be changed
ERROR = re.compile(r"[a-z_]{2,60}")
Answer = Mapping[str, Any]


class Slack:
    """One session of calls."""

    def __init__(self) -> None:
        self.resting: dict[str, float] = {}  # until then, by the monotonic clock: a method, or a webhook

    def call(self, method: str, body: Mapping[str, Any]) -> tuple[Answer, Receipt]:
        """Call a method with a JSON body; return what it answered, {} where it failed, and the receipt."""
        sent = json.dumps(body, ensure_ascii=False).encode()
        return self._called(method, sent, "application/json; charset=utf-8")

    def ask(self, method: str, **said: str) -> tuple[Answer, Receipt]:
        """Call a method that takes a form."""
        return self._called(method, urlencode(said).encode(), "application/x-www-form-urlencoded")

    def post(self, url: str, body: Mapping[str, Any]) -> Receipt:
        """Send a message to an incoming webhook, whose answer is a word."""
        if rest := self._rest(url):
            return rest
        sent = sending.send(url, json.dumps(body, ensure_ascii=False).encode(), {})
        said = sent.answer.decode("latin-1").strip()
        if sent.status is not None and not sent.delivered and ERROR.fullmatch(said):
            return self._noted(url, refused(said, retry_after=sent.retry_after))
        return self._noted(url, of_one_host(receipt(sent, gone=frozenset({404, 410}), reference=HOOK)))

    def _called(self, method: str, body: bytes, media_type: str) -> tuple[Answer, Receipt]:
        if rest := self._rest(method):
            return {}, rest
        headers = {"authorization": f"Bearer {settings.HOLDPOINT_SLACK_TOKEN}", "content-type": media_type}
        sent = sending.send(urljoin(settings.HOLDPOINT_SLACK_API, method), body, headers, most=ANSWER)
        answer = _read(sent.answer)
        if answer.get("ok") is True and sent.delivered:
            return answer, Receipt(Result.SENT)
        error = str(answer.get("error", ""))
        if ERROR.fullmatch(error):
            return {}, self._noted(method, refused(error, retry_after=sent.retry_after))
        if sent.delivered:
            return {}, Receipt(Result.LATER, "bad_answer")
        return {}, self._noted(method, receipt(sent))

    def _rest(self, what: str) -> Receipt | None:
        left = self.resting.get(what, 0) - time.monotonic()
        return Receipt(Result.LATER, "http_429", retry_after=left) if left > 0 else None

    def _noted(self, what: str, came: Receipt) -> Receipt:
        if came.retry_after:
            self.resting[what] = time.monotonic() + came.retry_after
        return came


def _read(answer: bytes) -> Answer:
    try:
        found = json.loads(answer)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
