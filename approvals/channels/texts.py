"""Texts that the channels have in common. Pure."""

from __future__ import annotations

from django.utils.translation import gettext as _

from approvals.notifications.message import MessageFact, NoticeMessage
from approvals.notifications.moments import moment


def heading(message: NoticeMessage) -> str:
    """Return the first line: what happened; of a gate that has ended its title, as how it ended follows."""
    return message.title if message.ended and message.title else message.subject


def shortened(text: str, most: int) -> str:
    """Cut a text to so many characters, and show that it was cut."""
    return text if len(text) <= most else text[: most - 1] + "…"


def facts(message: NoticeMessage, zone: str) -> list[MessageFact]:
    """Return the message's facts, with the deadline as a clock in this zone shows it."""
    until = [MessageFact(_("Decide until"), moment(message.deadline, zone))] if message.deadline else []
    return [*message.facts, *until]
