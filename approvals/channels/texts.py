"""Texts that the channels have in common. Pure.

It also turns what came of sending into the receipt that notices are kept by. Pure.

It also reads what the channels need to know of people and teams.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import TypeVar

import httpx
from django.db.models import OuterRef, Subquery

from approvals.models import ChannelAddress, Profile
from approvals.notifications.building import MessageFact, NoticeMessage, Section, write_moment
from approvals.notifications.channel import UNREACHED, NoticeAddress, Receipt, Result
from approvals.outbound.sending import SendResult

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
    return Receipt(Result.LATER, sent.word, retry_after=sent.retry_after)


def of_one_host(came: Receipt) -> Receipt:
    """Return the receipt of an address whose host somebody chose: that it is not reached keeps no other one waiting.

    The channel would rest otherwise, for everybody.
    """
    return replace(came, word=f"{ITS}{came.word}") if came.word in UNREACHED else came


def zone_of(person: str) -> Subquery:
    """Return the time zone that a person chose, as a column beside the person's."""
    return Subquery(Profile.objects.filter(pk=OuterRef(person)).values("zone"))


def of_teams(channel: str, teams: Collection[int]) -> list[NoticeAddress]:
    """List the addresses of these teams in a channel."""
    if not teams:
        return []
    found = ChannelAddress.objects.usable(channel).filter(team__in=list(teams)).order_by("pk")
    return [
        NoticeAddress(channel=channel, value=each.value, label=each.label, id=each.pk, team=each.team_id)
        for each in found
    ]
