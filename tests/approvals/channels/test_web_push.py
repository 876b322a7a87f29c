"""Web Push, against a push service that checks who sends and a browser that decrypts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from approvals.channels import vapid
from approvals.channels.web_push import LONGEST_LIFE, WebPush, life
from approvals.notifications.channel import Receipt, Result
from approvals.notifications.message import Urgency
from tests.approvals.webhooks.receiver import cut, status

from .messages import LINK, address, asked, decided, hostile
from .push_service import FakeBrowser, PushService


def send(browser: FakeBrowser, message: Any = None, *, signed_in: bool = True) -> Receipt:
    there = replace(address("push", browser.value, team=None, person=1), signed_in=signed_in)
    with WebPush().session() as sender:
        return sender.send(message or asked(), there, key="1.1")


@pytest.fixture
def browser(push_service: PushService) -> FakeBrowser:
    return push_service.subscribe(vapid.public_key())


def test_the_browser_reads_it_and_the_push_service_only_hands_it_on(
    push_service: PushService, browser: FakeBrowser
) -> None:
    assert send(browser) == Receipt(Result.SENT, reference="gate-42")
    assert push_service.refusals == []
    assert browser.read() == [
        {
            "title": "Decide: Refund €1,284.00", "body": "Amount: €1,284.00\nRisk: High", "tag": "gate-42",
            "link": LINK, "ended": False, "urgent": False,
        }
    ]  # fmt: skip
    [got] = browser.got
    assert b"Refund" not in got.body
    assert (got.headers["topic"], got.headers["urgency"]) == ("gate-42", "normal")


def test_where_the_session_has_expired_it_says_only_that_there_is_a_message(browser: FakeBrowser) -> None:
    """Nothing came there any more twelve hours after the sign-in; before, everything did."""
    send(browser, signed_in=False)
    send(browser, decided(), signed_in=False)
    waits, ended = browser.read()
    for told in (waits, ended):
        assert (told["title"], told["body"]) == ("Holdpoint has a message for you", "Sign in to read it.")
    assert (waits["tag"], waits["link"], ended["ended"]) == ("gate-42", LINK, True)


def test_the_end_of_a_gate_takes_the_place_of_its_beginning(browser: FakeBrowser) -> None:
    send(browser, decided(urgency=Urgency.LOW))
    [told] = browser.read()
    assert (told["tag"], told["ended"], told["body"]) == ("gate-42", True, "Approved by Ann Okafor.")
    assert browser.got[0].headers["urgency"] == "low"


def test_the_longest_message_fits(browser: FakeBrowser) -> None:
    assert send(browser, hostile()).result == Result.SENT
    assert len(browser.got[0].body) <= 4096


@pytest.mark.parametrize("code", [404, 410])
def test_a_subscription_that_is_gone_is_gone(push_service: PushService, browser: FakeBrowser, code: int) -> None:
    push_service.answers.append(status(code))
    assert send(browser) == Receipt(Result.GONE, "push_gone")


def test_what_may_be_taken_later_is_tried_again(push_service: PushService, browser: FakeBrowser) -> None:
    push_service.answers.extend([status(429, Retry_After="30"), status(503), cut])
    assert send(browser) == Receipt(Result.LATER, "http_429", retry_after=30.0)
    assert send(browser) == Receipt(Result.LATER, "http_503")
    assert send(browser) == Receipt(Result.LATER, "cut")
    assert send(browser).result == Result.SENT


def test_a_message_that_is_too_long_for_the_service_is_not_tried_again(
    push_service: PushService, browser: FakeBrowser
) -> None:
    push_service.answers.append(status(413))
    assert send(browser) == Receipt(Result.REFUSED, "http_413")


def test_a_browser_that_subscribed_under_an_earlier_key_must_subscribe_again(
    browser: FakeBrowser, settings: Any
) -> None:
    settings.HOLDPOINT_VAPID_KEY = vapid.make()
    assert send(browser) == Receipt(Result.GONE, "key_changed")
    assert browser.got == []


def test_a_service_that_does_not_know_the_sender_keeps_the_browser(browser: FakeBrowser) -> None:
    """A wrong clock would otherwise unsubscribe everybody."""
    browser.sender = "another"
    assert WebPush().unfit() == ""
    with WebPush().session() as sender:
        browser.sender = vapid.public_key()
        to = address("push", browser.value, team=None, person=1)
        browser.sender = "another"
        assert sender.send(asked(), to, key="1.1").result == Result.LATER


def test_nothing_is_sent_to_a_private_address(browser: FakeBrowser, settings: Any) -> None:
    settings.HOLDPOINT_WEBHOOKS_PRIVATE = []
    assert send(browser) == Receipt(Result.REFUSED, "bad_address")
    assert browser.got == []


def test_without_a_key_the_channel_is_not_there(settings: Any) -> None:
    settings.HOLDPOINT_VAPID_KEY = ""
    assert "manage.py vapid" in WebPush().unfit()


@pytest.mark.parametrize(
    ("left", "seconds"), [(timedelta(hours=1), 3600), (timedelta(seconds=-5), 60), (timedelta(days=90), LONGEST_LIFE)]
)
def test_a_message_lives_until_the_deadline(left: timedelta, seconds: int) -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    assert life(asked(deadline=now + left), now=now) == seconds
    assert life(asked(), now=now) == life(decided(deadline=now), now=now) == LONGEST_LIFE
