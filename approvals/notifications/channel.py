"""The one interface of all channels: e-mail, Slack, Teams and Web Push differ only behind it.

A channel is registered once, by name. It finds the addresses of people and teams, and sends one message to one address.
A failure of the other side is data and never an exception: the receipt says whether to try again. Every channel runs
tests/approvals/notifications/channel_contract.py.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from .message import NoticeMessage


class Result(StrEnum):
    """The result of one attempt."""

    SENT = "sent"  # the other side took it
    LATER = "later"  # it may be taken later: try again
    REFUSED = "refused"  # this message is never taken: do not try again
    GONE = "gone"  # the address takes no message any more: use it no more


# Codes that say that the other side was not reached at all: the channel then rests for a while.
UNREACHED = frozenset({"refused", "dns_failed", "tls_failed", "timeout", "cut", "sign_in", "fault"})


@dataclass(frozen=True)
class Receipt:
    """The receipt of one attempt.

    `word` is a code that pages and metrics show ("smtp_550", "http_503", "dns_failed"; "" where it was sent).
    `reference` is what the channel needs to find the message again, as Slack's "channel:ts"; at most 200 characters,
    without a blank.
    """

    result: Result
    word: str = ""
    reference: str = ""
    retry_after: float | None = None  # seconds that the other side asks for


@dataclass(frozen=True, kw_only=True)
class NoticeAddress:
    """One address of a person or of a team.

    `id`: the row's of ChannelAddress; None where the channel keeps its addresses elsewhere, as e-mail does.
    `value`: what the channel sends to: an e-mail address, a webhook's URL, a push subscription as JSON. May be secret:
    pages and logs show `label`.
    """

    channel: str
    value: str
    label: str
    id: int | None = None
    person: int | None = None
    team: int | None = None
    name: str = ""  # of the person, for the greeting
    zone: str = "UTC"  # the person's time zone, for times
    signed_in: bool = True  # else others may read what comes there, and it says no more than that there is a message


class ChannelSender(Protocol):
    """A session of a channel, by which several messages are sent."""

    def send(self, message: NoticeMessage, to: NoticeAddress, *, key: str, earlier: str = "") -> Receipt:
        """Send one message and return its receipt; raise nothing for what the other side does.

        `key` is the same at each attempt of one notice, so that the other side can drop a second copy. `earlier`: the
        references of the messages about the same gate to the same address, the oldest first, separated by blanks.
        """
        ...


class NoticeChannel(Protocol):
    """One way to reach people."""

    name: str  # "email", "slack", "teams", "push": in rows, preferences and metrics; at most 12 characters
    label: str  # a text for pages
    updates: bool  # whether a gate's end is told wherever the gate was told, as the message is changed in place
    at_once: int  # messages that one session is given, at most, before what became of them is recorded

    @property
    def personal(self) -> bool:
        """Tell whether single persons have addresses in it, and so choose what they are told by it."""
        ...

    def unfit(self) -> str:
        """Say why this installation cannot use the channel, as a sentence for operators; "" where it can."""
        ...

    def addresses(self, *, people: Collection[int] = (), teams: Collection[int] = ()) -> list[NoticeAddress]:
        """List the addresses of these people and teams that messages may go to. One or two statements."""
        ...

    def session(self) -> AbstractContextManager[ChannelSender]:
        """Open a session for several messages; connections are kept inside of it, and made when first needed."""
        ...


_channels: dict[str, NoticeChannel] = {}


def register(channel: NoticeChannel) -> None:
    """Add a channel, or replace the one of this name."""
    _channels[channel.name] = channel


def channels() -> list[NoticeChannel]:
    """List the channels that this installation can use, in the order of their registration."""
    return [each for each in _channels.values() if not each.unfit()]


def personal() -> list[NoticeChannel]:
    """List those of them in which single persons have addresses."""
    return [each for each in channels() if each.personal]


def named(name: str) -> NoticeChannel | None:
    """Find a channel that this installation can use."""
    found = _channels.get(name)
    return found if found and not found.unfit() else None


def registered(name: str) -> NoticeChannel | None:
    """Find a channel by its name, also where this installation cannot use it: for its label."""
    return _channels.get(name)
