"""Registers the channels of this room with the notifier."""

from __future__ import annotations

from approvals.notifications import channel, log

from . import browsers, slack_api, webhook
from .slack import SlackChannel
from .teams import Teams
from .texts import ITS
from .web_push import UNKNOWN, WebPush

# Code -> words, as a part of a sentence, beside those of approvals.notifications.log.
WORDS = {
    UNKNOWN: "the browser takes no messages any more: turn it on again there",
    "key_changed": "this installation has another key: turn it on again in this browser",
    "secret_lost": "the key that the address was sealed with is gone: add it again",
    "bad_answer": "the server's answer could not be read",
    "redirected": "the server is elsewhere now, and redirects are not followed",
    "not_https": "the address is not encrypted",
    "private_address": "the host's name leads to a private address",
    browsers.TAKEN: "somebody else turned it on in this browser",
    browsers.TOO_MANY: "you turned on too many others",
}


def register() -> None:
    """Add all of them, and their words, once a process."""
    unreached = {f"{ITS}{word}": log.WORDS[word] for word in channel.UNREACHED}
    log.WORDS.update(unreached | WORDS | slack_api.WORDS)
    channel.register(SlackChannel())
    channel.register(Teams())
    channel.register(WebPush())
    channel.register_family("webhook", webhook.find)
