"""The message about a gate, built once and rendered by each channel. Pure: plain text, no markup, no database.

It holds only what the gate's policy lets leave the house. A channel adds no fact of its own, and escapes everything:
titles and facts are an agent's words.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from zoneinfo import ZoneInfo, available_timezones

from django.db.models import TextChoices
from django.utils import formats


class NoticeKind(TextChoices):
    """The kinds of messages, with the words of the logs. A person chooses channels for all but the last four."""

    ASKED = "asked", "decision needed"  # somebody has to decide, and this person may
    REMINDER = "reminder", "reminder"  # the deadline is near, and nobody has decided
    DECIDED = "decided", "how it ended"  # a gate that the person was told of has ended
    MENTION = "mention", "mention"  # somebody named the person in a gate's thread
    HANDOVER = "handover", "handover"  # somebody took over what the person had claimed, or named them to stand in
    MY_RUN = "my_run", "own run"  # a gate of a run that the person started has ended, or the run failed
    DIGEST = "digest", "digest"  # what waits for the person, at the times that they chose
    TEST = "test", "test message"  # the person asked for it on the page of notification settings
    ACCOUNT = "account", "change of the account"  # how the person signs in was changed
    RESET = "reset", "link for a new password"  # somebody asked for it on the sign-in page


class Urgency(IntEnum):
    """The urgency of a message; a channel maps it to its own words (Web Push: RFC 8030, section 5.3)."""

    LOW = 0  # may wait: decided, digest
    NORMAL = 1
    HIGH = 2  # critical risk, or a deadline within the hour


@dataclass(frozen=True)
class MessageFact:
    """One labelled value, as text."""

    label: str
    value: str


@dataclass(frozen=True)
class Section:
    """The values of one action, where the policy lets all of it leave."""

    heading: str
    facts: tuple[MessageFact, ...] = ()


@dataclass(frozen=True, kw_only=True)
class NoticeMessage:
    """One message. `link` is the only address in it, and opens a page; nothing is decided by opening it."""

    kind: NoticeKind
    subject: str  # one line: what happened, with the gate's title
    title: str  # the gate's title alone, in the agent's words; "" where there is no gate
    reason: str = ""  # why this person gets it, as a sentence
    facts: tuple[MessageFact, ...] = ()
    sections: tuple[Section, ...] = ()
    link: str  # absolute
    settings_link: str  # absolute: the page where the person changes or stops these messages; "" where they cannot
    button: str  # the words of the link: "Open the request"
    urgency: Urgency = Urgency.NORMAL
    gate: int | None = None
    thread: str = ""  # the same for all messages about one gate, as "gate-42"; "" where it stands alone
    deadline: datetime | None = None  # aware; channels show it in the person's zone
    ended: str = ""  # how the gate ended, as a sentence: "Approved by Ann Okafor."; "" while it is open
    items: tuple[NoticeMessage, ...] = field(default=())  # of a list: what waits, the most urgent first


def write_moment(at: datetime, zone: str) -> str:
    """Write a moment in its reader's zone, with day and zone, as "27 Nov 2026, 14:00 (Europe/Berlin)"."""
    name = zone if zone in available_timezones() else "UTC"
    there = at.astimezone(ZoneInfo(name))
    return f"{formats.date_format(there, 'j M Y, H:i')} ({name})"
