"""Calls Slack: its Web API with the bot's token, and incoming webhooks. What Slack answers is a receipt.

A call that Slack refuses for its rate (429, Retry-After) is not made again before the time that Slack asks for: within
one session the same call is answered by its own pause.

Also here: the errors that Slack answers with, and what they mean. Pure.

They are those of https://docs.slack.dev/reference/methods/chat.postMessage and of incoming webhooks. A receipt's
word is `slack_` and the error, so that the log can say what to do.
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

from .texts import of_one_host, receipt

LONGEST = 30  # characters of a receipt's word
GONE, LATER = Result.GONE, Result.LATER
_TOKEN = "Slack does not accept HOLDPOINT_SLACK_TOKEN any more: put the app's new token there"  # noqa: S105
_CHANNEL = "Slack knows no such channel, or the app is not in it: invite the app, and add the channel again"
_OUTSIDE = "the app is not in the Slack channel: invite it"
_NO_TAB = "the app takes no messages: turn on the Messages tab in its settings, under App Home"
_NOBODY = "nobody in Slack has this e-mail address"
_AWAY = "the person's Slack account is off"
_REMOVED = "the webhook was removed in Slack: add another one"
_ARCHIVED = "the channel was archived in Slack"
_SCOPE = "the Slack app lacks a scope: it needs chat:write, users:read and users:read.email"
_ILL = "Slack could not take it just now"
# Error -> (what that means for the address, words as a part of a sentence). LATER: once somebody did what they say.
ERRORS = {
    "channel_not_found": (GONE, _CHANNEL), "not_in_channel": (LATER, _OUTSIDE),
    "is_archived": (GONE, _ARCHIVED), "channel_is_archived": (GONE, _ARCHIVED),
    "users_not_found": (GONE, _NOBODY), "user_not_found": (GONE, _NOBODY), "user_disabled": (GONE, _AWAY),
    "cannot_dm_bot": (GONE, "this is an app's account in Slack, not a person's"),
    "messages_tab_disabled": (LATER, _NO_TAB),
    "invalid_token": (GONE, _REMOVED), "no_service": (GONE, _REMOVED), "no_active_hooks": (GONE, _REMOVED),
    "no_team": (GONE, _REMOVED), "team_disabled": (GONE, _REMOVED),
    "invalid_auth": (LATER, _TOKEN), "not_authed": (LATER, _TOKEN), "token_revoked": (LATER, _TOKEN),
    "token_expired": (LATER, _TOKEN), "account_inactive": (LATER, _TOKEN),
    "missing_scope": (LATER, _SCOPE), "no_permission": (LATER, _SCOPE), "access_denied": (LATER, _SCOPE),
    "ratelimited": (LATER, _ILL), "rate_limited": (LATER, _ILL), "service_unavailable": (LATER, _ILL),
    "internal_error": (LATER, _ILL), "fatal_error": (LATER, _ILL), "request_timeout": (LATER, _ILL),
    "rollup_error": (LATER, _ILL),
}  # fmt: skip
# The earlier message cannot be changed, so a new one is sent.
UNCHANGEABLE = frozenset({"message_not_found", "cant_update_message", "edit_window_closed"})


def word_of(error: str) -> str:
    """Return the receipt's word for an error."""
    return f"slack_{error}"[:LONGEST]


WORDS = {word_of(error): said for error, (_result, said) in ERRORS.items()}


def refused(error: str, *, retry_after: float | None = None) -> Receipt:
    """Return the receipt of a call that Slack refused with this error."""
    result = ERRORS[error][0] if error in ERRORS else LATER if retry_after else Result.REFUSED
    return Receipt(result, word_of(error), retry_after=retry_after)


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
