"""The one interface of all channels: e-mail, Slack, Teams, Web Push and webhooks differ only behind it.

A channel is registered once, by name, or with others of its family. It sends one message to one address; one that tells
people finds their addresses, too, and a new one needs a class and its registration. A failure of the other side is
data and never an exception: the receipt says whether to try again. Every channel that tells people runs
tests/approvals/notifications/channel_contract.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from django.conf import settings

from approvals.outbound import targets


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
    answer: int | None = None  # the HTTP status of its answer


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

    def send(self, message: Any, to: Any, *, key: str, earlier: str = "") -> Receipt:
        """Send one message and return its receipt; raise nothing for what the other side does.

        `message`: a NoticeMessage to a NoticeAddress; a webhook's bytes to nobody else. `key` is the same at each
        attempt, so that the other side can drop a second copy. `earlier`: the references of the messages about the same
        gate to the same address, the oldest first, separated by blanks.
        """
        ...


class MessageChannel:
    """One way to send messages: a channel says what differs, and sends."""

    name: str  # "email", "slack", "teams", "push": in rows, preferences and metrics; at most 12 characters
    at_once = 10  # messages that one session is given, at most, before others are looked for

    @property
    def connections(self) -> int:
        """Return how many sessions send at the same time."""
        return int(settings.HOLDPOINT_NOTICES_CONNECTIONS)

    @property
    def pauses(self) -> Sequence[float]:
        """Return the seconds between the tries of a message."""
        pauses: Sequence[float] = settings.HOLDPOINT_NOTICES_RETRIES
        return pauses

    @contextmanager
    def session(self) -> Iterator[ChannelSender]:
        """Open a session for several messages, which keeps connections inside of it. This one keeps none."""
        yield self

    def send(self, message: Any, to: Any, *, key: str, earlier: str = "") -> Receipt:
        """Send one message; see ChannelSender."""
        raise NotImplementedError

    def ended(self, receipts: Sequence[Receipt]) -> bool:
        """Hear what became of messages, in the transaction of its record; tell whether more may be sent."""
        return True


class NoticeChannel(MessageChannel):
    """One way to reach people: it knows who has an address in it."""

    label: str  # a text for pages
    updates = False  # whether a gate's end is told wherever the gate was told
    takes = ""  # what address a team may have in it, as the end of a sentence; "": none

    def fault(self, address: str) -> str:
        """Say why nothing can be sent to a team's address in it, and what to do; "" where it can."""
        return targets.fault(address)

    @property
    def personal(self) -> bool:
        """Tell whether single persons have addresses in it, and so choose what they are told by it."""
        return False

    def unfit(self) -> str:
        """Say why this installation cannot use the channel, as a sentence for operators; "" where it can."""
        return ""

    def addresses(self, *, people: Collection[int] = (), teams: Collection[int] = ()) -> list[NoticeAddress]:
        """List the addresses of these people and teams that messages may go to. One or two statements."""
        raise NotImplementedError


_channels: dict[str, NoticeChannel] = {}
_families: dict[str, Callable[[str], MessageChannel | None]] = {}


def register(channel: NoticeChannel) -> None:
    """Add a channel that tells people, or replace the one of this name."""
    _channels[channel.name] = channel


def register_family(prefix: str, find: Callable[[str], MessageChannel | None]) -> None:
    """Add the channels whose names begin with `prefix:`; `find` returns one by its name, None where it is not there."""
    _families[prefix] = find


def channels() -> list[NoticeChannel]:
    """List the channels that tell people and that this installation can use, in the order of their registration."""
    return [each for each in _channels.values() if not each.unfit()]


def personal() -> list[NoticeChannel]:
    """List those of them in which single persons have addresses."""
    return [each for each in channels() if each.personal]


def named(name: str) -> MessageChannel | None:
    """Find a channel that may be sent by now."""
    found = _channels.get(name)
    if found is not None:
        return None if found.unfit() else found
    family = _families.get(name.partition(":")[0])
    return family(name) if family else None


def registered(name: str) -> NoticeChannel | None:
    """Find a channel by its name, also where this installation cannot use it: for its label."""
    return _channels.get(name)
