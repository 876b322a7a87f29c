"""Texts that the channels have in common. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from approvals.notifications.message import MessageFact, NoticeMessage, Section, write_moment

Drawn = TypeVar("Drawn")


def heading(message: NoticeMessage) -> str:
    """Return the first line: what happened; of a gate that has ended its title, as how it ended follows."""
    return message.title if message.ended and message.title else message.subject


def fitting(message: NoticeMessage, draw: Callable[[NoticeMessage], Drawn], fits: Callable[[Drawn], bool]) -> Drawn:
    """Draw a message with as many of its actions, and of the gates of a list, as fit into what a service takes.

    It would refuse the whole. A list says in its first line how many there are.
    """
    for some in _fewer(message):
        drawn = draw(some)
        if fits(drawn):
            break
    return drawn


def _fewer(message: NoticeMessage) -> Iterator[NoticeMessage]:
    yield message
    for shown in range(len(message.sections) - 1, -1, -1):
        yield replace(message, sections=(*message.sections[:shown], Section("More is on the gate's page.")))
    for shown in range(len(message.items) - 1, -1, -1):
        yield replace(message, items=message.items[:shown])


def shortened(text: str, most: int) -> str:
    """Cut a text to so many characters, and show that it was cut."""
    return text if len(text) <= most else text[: most - 1] + "…"


def facts(message: NoticeMessage, zone: str) -> list[MessageFact]:
    """Return the message's facts, with the deadline as a clock in this zone shows it."""
    until = [MessageFact("Decide until", write_moment(message.deadline, zone))] if message.deadline else []
    return [*message.facts, *until]
