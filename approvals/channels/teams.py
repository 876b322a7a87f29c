"""The channel for Microsoft Teams and whatever else takes Adaptive Cards by a webhook: to a team's channel.

What was sent cannot be changed, so the end of a gate is a card of its own: an Adaptive Card 1.4
(https://adaptivecards.io). Every text is a TextRun, in which no markup is read; a TextBlock or a FactSet would read an
agent's words as Markdown. The one action opens a page.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from approvals.notifications.building import MessageFact, NoticeMessage
from approvals.notifications.channel import NoticeAddress, NoticeChannel, Receipt, Result
from approvals.outbound import sending

from .texts import facts, fitting, heading, of_one_host, of_teams, receipt, shortened

LONGEST = 1000  # characters of one text
LARGEST = 27 * 1024  # bytes of a body: Teams refuses one of more than 28 KB
FACTS, ITEMS = 12, 25
MEDIA_TYPE = "application/vnd.microsoft.card.adaptive"
NAME = "teams"
GONE = frozenset({404, 410})  # the workflow was removed
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


class Teams(NoticeChannel):
    """The channel."""

    name = NAME
    label = "Microsoft Teams"
    updates = True
    takes = (
        "the address of a workflow “When a Teams webhook request is received”, or of anything else that takes Adaptive "
        "Cards"
    )

    def addresses(self, *, people: Collection[int] = (), teams: Collection[int] = ()) -> list[NoticeAddress]:
        """List these teams' channels. A person has none."""
        return of_teams(NAME, teams)

    def send(self, message: NoticeMessage, to: NoticeAddress, *, key: str, earlier: str = "") -> Receipt:
        """Send one card."""
        url = sending.unseal(to.value)
        if not url:
            return Receipt(Result.REFUSED, "secret_lost")
        return of_one_host(receipt(sending.send(url, body_of(message, to.zone), {}), gone=GONE, reference="card"))
