"""Cards for Teams, against a receiver that keeps them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from approvals.channels.teams import Teams
from approvals.notifications.channel import NoticeAddress, Receipt, Result
from approvals.notifications.message import MessageFact, Section
from approvals.outbound import signing
from tests.approvals.webhooks.receiver import Receiver, status

from .messages import HOSTILE, LINK, address, asked, decided, hostile

ELEMENTS = {"RichTextBlock", "ColumnSet", "Column", "Container", "TextRun", "Action.OpenUrl", "AdaptiveCard"}


@pytest.fixture
def to(receiver: Receiver) -> NoticeAddress:
    receiver.otherwise = status(202)
    return address("teams", signing.seal(receiver.url))


def send(to: NoticeAddress, message: Any = None) -> Receipt:
    with Teams().session() as sender:
        return sender.send(message or asked(), to, key="1.1")


def elements(found: Any) -> Iterator[dict[str, Any]]:
    if isinstance(found, dict):
        if "type" in found:
            yield found
        for part in found.values():
            yield from elements(part)
    elif isinstance(found, list):
        for part in found:
            yield from elements(part)


def card(receiver: Receiver) -> dict[str, Any]:
    body = json.loads(receiver.got[-1].body)
    [attachment] = body["attachments"]
    assert (body["type"], attachment["contentType"]) == ("message", "application/vnd.microsoft.card.adaptive")
    found: dict[str, Any] = attachment["content"]
    return found


def test_a_card_opens_the_gate_and_does_nothing_else(receiver: Receiver, to: NoticeAddress) -> None:
    assert send(to) == Receipt(Result.SENT, reference="card")
    shown = card(receiver)
    assert shown["version"] == "1.4"
    assert shown["actions"] == [{"type": "Action.OpenUrl", "title": "Open the request", "url": LINK}]
    assert {each["type"] for each in elements(shown)} <= ELEMENTS


def test_an_agents_words_are_read_as_no_markup(receiver: Receiver, to: NoticeAddress) -> None:
    assert send(to, hostile()).result == Result.SENT
    shown = list(elements(card(receiver)))
    assert {each["type"] for each in shown} <= ELEMENTS, "a TextBlock or a FactSet reads Markdown"
    assert HOSTILE in [each.get("text") for each in shown]
    assert len(receiver.got[-1].body) < 28 * 1024, "Teams takes no more"


def test_a_card_of_many_long_actions_is_cut_to_what_teams_takes(receiver: Receiver, to: NoticeAddress) -> None:
    """Teams refused it, so that a team which lets all values leave heard nothing of its largest gates."""
    facts = tuple(MessageFact(f"Field {n}", "\u20ac" * 300) for n in range(25))
    sections = tuple(Section(f"Action {n}", facts) for n in range(11))
    assert send(to, asked(sections=sections)).result == Result.SENT
    assert len(receiver.got[-1].body) < 28 * 1024
    said = [each.get("text") for each in elements(card(receiver))]
    assert [f"Action {n}" in said for n in (0, 10)] == [True, False]
    assert "More is on the gate's page." in said


def test_the_end_is_a_card_of_its_own(receiver: Receiver, to: NoticeAddress) -> None:
    send(to)
    send(to, decided())
    said = [each.get("text") for each in elements(card(receiver))]
    assert "Approved by Ann Okafor." in said


def test_what_comes_back_is_data(receiver: Receiver, to: NoticeAddress) -> None:
    receiver.answers.extend(
        [status(404), status(429, Retry_After="7"), status(400), status(302, Location="http://127.0.0.1/")]
    )
    assert send(to) == Receipt(Result.GONE, "http_404")
    assert send(to) == Receipt(Result.LATER, "http_429", retry_after=7.0)
    assert send(to) == Receipt(Result.REFUSED, "http_400")
    assert send(to) == Receipt(Result.LATER, "redirected")
    assert len(receiver.got) == 4, "a redirect is not followed"
