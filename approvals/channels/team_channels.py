"""Chat channels in which all gates of a team are told: added, tried out and removed by those who manage its webhooks.

The address of a webhook lets anybody write there, so it is stored sealed, shown to nobody, and named by its host.

Also here: the channel for Microsoft Teams and whatever else takes Adaptive Cards by a webhook: to a team's channel.

What was sent cannot be changed, so the end of a gate is a card of its own.

It also draws a message as an Adaptive Card 1.4 (https://adaptivecards.io). Pure.

Every text is a TextRun, in which no markup is read; a TextBlock or a FactSet would read an agent's words as Markdown.
The one action opens a page.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import transaction

from approvals.english import count_of
from approvals.models import ChannelAddress
from approvals.notifications import account, channel, log
from approvals.notifications.building import MessageFact, NoticeMessage
from approvals.notifications.channel import NoticeAddress, NoticeChannel, Receipt, Result
from approvals.outbound import sending, targets
from checkpoints.actors import Actor
from checkpoints.events import event_log

from . import slack
from .browsers import REMOVED
from .texts import facts, fitting, heading, of_one_host, of_teams, receipt, shortened

LONGEST = 1000  # characters of one text
LARGEST = 27 * 1024  # bytes of a body: Teams refuses one of more than 28 KB
FACTS, ITEMS = 12, 25
MEDIA_TYPE = "application/vnd.microsoft.card.adaptive"
Element = dict[str, Any]


def body_of(message: NoticeMessage, zone: str) -> bytes:
    """Return the body that a workflow of "When a Teams webhook request is received" takes.

    Of many actions, or of a long list, it has as many as fit.
    """
    return fitting(message, lambda some: _body_of(some, zone), lambda body: len(body) <= LARGEST)


def _body_of(message: NoticeMessage, zone: str) -> bytes:
    card = {"contentType": MEDIA_TYPE, "contentUrl": None, "content": card_of(message, zone)}
    return json.dumps({"type": "message", "attachments": [card]}, ensure_ascii=False).encode()


def card_of(message: NoticeMessage, zone: str) -> Element:
    """Return the card."""
    return {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4",
        "fallbackText": shortened(message.subject, LONGEST), "msteams": {"width": "Full"},
        "body": list(_body(message, zone)), "actions": [_open(message)],
    }  # fmt: skip


def _body(message: NoticeMessage, zone: str) -> Iterator[Element]:
    yield _text(heading(message), size="Large", weight="Bolder")
    if message.ended:
        yield _text(message.ended)
    yield from _facts(facts(message, zone))
    for section in () if message.ended else message.sections:
        yield _text(section.heading, weight="Bolder")
        yield from _facts(section.facts)
    for item in message.items[:ITEMS]:
        yield {"type": "Container", "items": [_text(item.subject)], "selectAction": _open(item)}
    if message.reason:
        yield _text(message.reason, size="Small", isSubtle=True)


def _facts(found: Sequence[MessageFact]) -> Iterator[Element]:
    for each in found[:FACTS]:
        columns = [_column(_text(each.label, isSubtle=True), 1), _column(_text(each.value), 2)]
        yield {"type": "ColumnSet", "spacing": "Small", "columns": columns}


def _column(item: Element, width: int) -> Element:
    return {"type": "Column", "width": width, "items": [item]}


def _text(text: str, **style: Any) -> Element:
    return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": shortened(text, LONGEST) or " ", **style}]}


def _open(message: NoticeMessage) -> Element:
    return {"type": "Action.OpenUrl", "title": message.button, "url": message.link}


NAME = "teams"
GONE = frozenset({404, 410})  # the workflow was removed


class Teams(NoticeChannel):
    """The channel."""

    name = NAME
    label = "Microsoft Teams"
    updates = True

    def addresses(self, *, people: Collection[int] = (), teams: Collection[int] = ()) -> list[NoticeAddress]:
        """List these teams' channels. A person has none."""
        return of_teams(NAME, teams)

    def send(self, message: NoticeMessage, to: NoticeAddress, *, key: str, earlier: str = "") -> Receipt:
        """Send one card."""
        url = sending.unseal(to.value)
        if not url:
            return Receipt(Result.REFUSED, "secret_lost")
        return of_one_host(receipt(sending.send(url, body_of(message, to.zone), {}), gone=GONE, reference="card"))


SERVICES = {slack.NAME: "Slack", NAME: "Microsoft Teams"}
MOST = 20  # channels of one team: each gate sends a message to every one


class ChannelRefused(Exception):
    """The channel cannot be as it is asked for; the sentence says what to change."""


class Tried(NamedTuple):
    """The result of a test message."""

    arrived: bool
    why: str  # where it did not arrive, as a part of a sentence


def fault(service: str, address: str) -> str:
    """Say why no message can be sent to this address of a service, and what to do; "" where one can."""
    if service == slack.NAME and slack.IN_SLACK.fullmatch(address):
        told = "No app can write there, as HOLDPOINT_SLACK_TOKEN is not set. Use an incoming webhook."
        return "" if settings.HOLDPOINT_SLACK_TOKEN else told
    if address.startswith("#"):
        return "Write the channel's id, such as C024BE91L: Slack shows it at the end of the channel's details."
    return targets.fault(address)


def full(team: Group) -> str:
    """Say why the team takes no more channels; "" where it does."""
    there = ChannelAddress.objects.filter(team=team, gone_at__isnull=True).count()
    if there < MOST:
        return ""
    return f"The team has {count_of(there, 'channel')}."


def add(team: Group, service: str, address: str, *, label: str, by: Actor) -> ChannelAddress:
    """Add a channel, or one that was removed or lost again, with its event. Raises ChannelRefused."""
    if why := fault(service, address):
        raise ChannelRefused(why)
    in_slack = service == slack.NAME and slack.IN_SLACK.fullmatch(address)
    value = address if in_slack else sending.seal(address)
    mark = hashlib.sha256(address.encode()).hexdigest()
    with transaction.atomic():
        Group.objects.select_for_update(no_key=True).get(pk=team.pk)  # the second of two at once counts the first
        if why := full(team):
            raise ChannelRefused(why)
        made, _created = ChannelAddress.objects.update_or_create(
            channel=service, user=None, team=team, mark=mark,
            defaults={"value": value, "label": label[:100], "gone_at": None, "gone_word": ""},
        )  # fmt: skip
        told = {"service": service, "host": "" if in_slack else targets.host_of(address)}
        _say("channel.added", made, by=by, data=told)
    return made


def remove(found: ChannelAddress, *, by: Actor) -> bool:
    """Send nothing more there. False where it was removed or lost before."""
    with transaction.atomic():
        if not ChannelAddress.objects.filter(pk=found.pk).lose(REMOVED):
            return False
        _say("channel.removed", found, by=by)
    return True


def test(found: ChannelAddress, *, by: Actor) -> Tried:
    """Send a test message now, with its event, and say what came of it."""
    known = channel.registered(found.channel)
    if known is None or found.team_id is None:
        raise ChannelRefused("There is no such service.")
    there = next((each for each in known.addresses(teams=[found.team_id]) if each.id == found.pk), None)
    if there is None:
        return Tried(False, log.words(found.gone_word))
    with transaction.atomic():
        _say("channel.tested", found, by=by)
    with known.session() as session:
        came: Receipt = session.send(account.test(), there, key=f"test.{found.pk}")
    if came.result == Result.GONE:
        ChannelAddress.objects.filter(pk=found.pk).lose(came.word)
    return Tried(came.result == Result.SENT, log.words(came.word))


def _say(kind: str, found: ChannelAddress, *, by: Actor, data: dict[str, Any] | None = None) -> None:
    event_log.record(kind, subject=f"channel:{found.pk}", by=by, team_id=found.team_id, data=data)
