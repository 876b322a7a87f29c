"""Registers the channels of this room with the notifier."""

from __future__ import annotations

from approvals.notifications import channel

from .slack import SlackChannel
from .teams import Teams
from .web_push import WebPush


def register() -> None:
    """Add all of them, once a process."""
    channel.register(SlackChannel())
    channel.register(Teams())
    channel.register(WebPush())
