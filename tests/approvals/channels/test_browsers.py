"""Browsers that take pushed messages: whose they are, and when they are told nothing more."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from approvals.accounts.user_agents import named
from approvals.channels import browsers, vapid
from approvals.channels.browsers import MOST, BrowserRemoved, SubscriptionRefused
from approvals.models import ChannelAddress
from tests.factories import ann, bob, make_team
from tests.harness.racing_threads import meet_lock
from tests.harness.signed_in_clients import signed_in

from .push_service import FakeBrowser, PushService


@pytest.fixture
def browser(push_service: PushService) -> FakeBrowser:
    return push_service.subscribe(vapid.public_key())


def labels(user: User) -> list[str]:
    return [each.label for each in ChannelAddress.objects.usable("push").filter(user=user).order_by("pk")]


def test_a_browser_is_there_once_and_belongs_to_whoever_subscribed_last(browser: FakeBrowser) -> None:
    first, second = ann(make_team()), bob(make_team())
    for _ in range(2):
        browsers.subscribe(first, browser.said, label="Firefox on Linux")
    assert labels(first) == ["Firefox on Linux"]
    browsers.subscribe(second, browser.said, label="Firefox on Linux")
    assert (labels(first), labels(second)) == ([], ["Firefox on Linux"])
    assert ChannelAddress.objects.get(user=first, channel="push").gone_word == browsers.TAKEN


def test_of_two_people_at_once_in_one_browser_the_second_has_it(browser: FakeBrowser) -> None:
    """Neither saw the other's row, and both were told there."""
    first, second = ann(make_team()), bob(make_team())
    held, late = (partial(browsers.subscribe, each, browser.said, label="Firefox") for each in (first, second))
    meet_lock(held, late)
    assert (labels(first), labels(second)) == ([], ["Firefox"])


def test_a_browser_that_was_removed_comes_back_only_when_it_is_turned_on(browser: FakeBrowser) -> None:
    user = ann(make_team())
    made = browsers.subscribe(user, browser.said, label="Firefox")
    assert browsers.subscribe(user, browser.said, label="Firefox", again=True) == made
    assert browsers.remove(user, made.pk)
    assert not browsers.remove(user, made.pk)
    with pytest.raises(BrowserRemoved):
        browsers.subscribe(user, browser.said, label="Firefox", again=True)
    assert labels(user) == []
    browsers.subscribe(user, browser.said, label="Firefox")
    assert labels(user) == ["Firefox"]


@pytest.mark.parametrize("lost", ["", "push_gone", "removed", "another_person"])
def test_a_browser_that_moved_stays_on_unless_its_owner_turned_it_off(push_service: PushService, lost: str) -> None:
    """Its new address was taken for one that its owner had removed, and it was turned off."""
    user = ann(make_team())
    first, second = (push_service.subscribe(vapid.public_key()) for _ in range(2))
    made = browsers.subscribe(user, first.said, label="Firefox")
    if lost:
        ChannelAddress.objects.filter(pk=made.pk).lose(lost)
    if lost in ("", "push_gone"):
        fresh = browsers.subscribe(user, second.said, label="Firefox", again=True, old=first.endpoint)
        assert [each.pk for each in browsers.listed(user)] == [fresh.pk]
    else:
        with pytest.raises(BrowserRemoved):
            browsers.subscribe(user, second.said, label="Firefox", again=True, old=first.endpoint)
        assert labels(user) == []


@pytest.mark.parametrize("removed", [False, True])
def test_a_browser_that_does_not_tell_from_where_it_moved_is_known_by_its_session(
    push_service: PushService, removed: bool
) -> None:
    """It was turned off, and its person heard nothing more: most browsers name no old address."""
    client = signed_in(user := ann(make_team()))
    first, second = (push_service.subscribe(vapid.public_key()) for _ in range(2))
    number = client.post(reverse("browsers"), first.said).json()["browser"]
    if removed:
        browsers.remove(user, number)
    answer = client.post(reverse("browsers"), {**second.said, "again": "1", "old": ""})
    assert answer.status_code == (410 if removed else 201)
    assert [each.pk for each in browsers.listed(user)] == ([] if removed else [answer.json()["browser"]])
    assert signed_in(user).post(reverse("browsers"), {**first.said, "again": "1"}).status_code == 410


def test_nobody_moves_anothers(push_service: PushService) -> None:
    user, other = ann(make_team()), bob(make_team())
    first, second = (push_service.subscribe(vapid.public_key()) for _ in range(2))
    browsers.subscribe(user, first.said, label="Firefox")
    with pytest.raises(BrowserRemoved):
        browsers.subscribe(other, second.said, label="Edge", again=True, old=first.endpoint)
    assert (labels(user), labels(other)) == (["Firefox"], [])


def test_nobody_removes_anothers(browser: FakeBrowser) -> None:
    user = ann(make_team())
    made = browsers.subscribe(user, browser.said, label="Firefox")
    assert not browsers.remove(bob(make_team()), made.pk)
    assert labels(user) == ["Firefox"]


def test_the_oldest_of_too_many_goes(push_service: PushService) -> None:
    user = ann(make_team())
    for number in range(MOST + 2):
        browsers.subscribe(user, push_service.subscribe(vapid.public_key()).said, label=f"number {number}")
    assert labels(user) == [f"number {number}" for number in range(2, MOST + 2)]


@pytest.mark.parametrize(
    "wrong",
    [
        {"endpoint": "http://169.254.169.254/latest"}, {"endpoint": "https://evil.example/push"}, {"endpoint": ""},
        {"endpoint": "http://127.0.0.1.evil.example/"}, {"p256dh": "AAAA"}, {"p256dh": "é"}, {"auth": "AAAA"},
    ],
)  # fmt: skip
def test_nothing_is_stored_that_nothing_could_be_sent_to(browser: FakeBrowser, wrong: dict[str, str]) -> None:
    user = ann(make_team())
    with pytest.raises(SubscriptionRefused):
        browsers.subscribe(user, browser.said | wrong, label="Firefox")
    assert not ChannelAddress.objects.filter(user=user).exists()


def test_a_form_turns_it_on_and_another_off(browser: FakeBrowser, settings: Any) -> None:
    user = ann(make_team())
    client = signed_in(user)
    agent = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}
    answer = client.post(reverse("browsers"), browser.said, headers=agent)
    assert answer.status_code == 201
    assert labels(user) == ["Firefox on Linux"]
    page = client.get(reverse("notifications")).content.decode()
    assert "Firefox on Linux" in page
    assert "No message yet." in page
    assert browser.endpoint not in page
    assert browser.said["auth"] not in page
    number = answer.json()["browser"]
    assert client.post(reverse("browser-removals", args=[number])).status_code == 303
    assert client.post(reverse("browser-removals", args=[number])).status_code == 404
    assert client.post(reverse("browsers"), browser.said | {"again": "1"}).status_code == 410
    assert client.post(reverse("browsers"), {"endpoint": "x" * 5000}).status_code == 422
    settings.HOLDPOINT_VAPID_KEY = ""
    assert client.post(reverse("browsers"), browser.said).status_code == 409


def test_an_iphone_is_named_and_told_what_it_takes() -> None:
    page = signed_in(ann(make_team())).get(reverse("notifications")).content.decode()
    assert "On an iPhone or iPad only the installed app takes messages." in page
    safari = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 Version/18.5 Safari/604.1"
    edge = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/140.0.0.0 Safari/537.36 Edg/140.0"
    assert [named(each) for each in (safari, edge, "curl/8.5", "")] == [
        "Safari on iPhone", "Edge on Windows", "curl", "Unknown browser",
    ]  # fmt: skip
