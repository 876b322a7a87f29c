"""Browsers that take pushed messages: whose they are, and that whoever signed out is told nothing there."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from approvals.accounts import pushed
from approvals.channels import browsers, vapid
from approvals.channels.browsers import MOST, BrowserRemoved, SubscriptionRefused
from approvals.channels.web_push import WebPush
from approvals.models import ChannelAddress, SignedIn
from approvals.sessions import digest_of_key
from tests.factories import ann, bob, make_team, make_user
from tests.harness.racing_threads import meet_lock
from tests.harness.signed_in_clients import signed_in

from .push_service import FakeBrowser, PushService

PASSWORD = "open sesame again"


def labels(user: User) -> list[str]:
    return [each.label for each in ChannelAddress.objects.usable("push").filter(user=user).order_by("pk")]


def test_a_browser_belongs_to_whoever_subscribed_last_also_of_two_at_once(its: FakeBrowser) -> None:
    first, second = ann(make_team()), bob(make_team())
    for _ in range(2):
        browsers.subscribe(first, its.said, label="Firefox on Linux")
    assert labels(first) == ["Firefox on Linux"]
    browsers.subscribe(second, its.said, label="Firefox on Linux")
    assert (labels(first), labels(second)) == ([], ["Firefox on Linux"])
    assert ChannelAddress.objects.get(user=first, channel="push").gone_word == browsers.TAKEN
    # Neither saw the other's row, and both were told there.
    first, second = ann(make_team()), bob(make_team())
    held, late = (partial(browsers.subscribe, each, its.said, label="Firefox") for each in (first, second))
    meet_lock(held, late)
    assert (labels(first), labels(second)) == ([], ["Firefox"])


@pytest.mark.parametrize("lost", ["push_gone", "removed"])
def test_a_browser_that_moved_stays_on_unless_its_owner_turned_it_off(push_service: PushService, lost: str) -> None:
    """Its new address was taken for one that its owner had removed, and it was turned off."""
    user = ann(make_team())
    first, second = (push_service.subscribe(vapid.public_key()) for _ in range(2))
    made = browsers.subscribe(user, first.said, label="Firefox")
    assert browsers.subscribe(user, first.said, label="Firefox", again=True) == made
    ChannelAddress.objects.filter(pk=made.pk).lose(lost)
    if lost == "push_gone":
        fresh = browsers.subscribe(user, second.said, label="Firefox", again=True, old=first.endpoint)
        assert [each.pk for each in browsers.listed(user)] == [fresh.pk]
    else:
        for said, old in ((second.said, first.endpoint), (first.said, "")):
            with pytest.raises(BrowserRemoved):
                browsers.subscribe(user, said, label="Firefox", again=True, old=old)
        assert labels(user) == []
        browsers.subscribe(user, first.said, label="Firefox")
        assert labels(user) == ["Firefox"]


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


def test_nobody_moves_or_removes_anothers_and_the_oldest_of_too_many_goes(push_service: PushService) -> None:
    user, other = ann(make_team()), bob(make_team())
    first, second = (push_service.subscribe(vapid.public_key()) for _ in range(2))
    made = browsers.subscribe(user, first.said, label="Firefox")
    assert not browsers.remove(other, made.pk)
    with pytest.raises(BrowserRemoved):
        browsers.subscribe(other, second.said, label="Edge", again=True, old=first.endpoint)
    assert (labels(user), labels(other)) == (["Firefox"], [])
    for number in range(MOST + 1):
        browsers.subscribe(user, push_service.subscribe(vapid.public_key()).said, label=f"number {number}")
    assert labels(user) == [f"number {number}" for number in range(1, MOST + 1)]


WRONG = [
    {"endpoint": "http://169.254.169.254/latest"}, {"endpoint": "https://evil.example/push"}, {"endpoint": ""},
    {"endpoint": "http://127.0.0.1.evil.example/"}, {"p256dh": "AAAA"}, {"p256dh": "é"}, {"auth": "AAAA"},
]  # fmt: skip


def test_nothing_is_stored_that_nothing_could_be_sent_to(its: FakeBrowser) -> None:
    user = ann(make_team())
    for wrong in WRONG:
        with pytest.raises(SubscriptionRefused):
            browsers.subscribe(user, its.said | wrong, label="Firefox")
    assert not ChannelAddress.objects.filter(user=user).exists()


def test_a_form_turns_it_on_and_another_off(its: FakeBrowser, settings: Any) -> None:
    user = ann(make_team())
    client = signed_in(user)
    agent = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}
    answer = client.post(reverse("browsers"), its.said, headers=agent)
    assert answer.status_code == 201
    assert labels(user) == ["Firefox on Linux"]
    page = client.get(reverse("notifications")).content.decode()
    assert "Firefox on Linux" in page
    assert "No message yet." in page
    assert its.endpoint not in page
    assert its.said["auth"] not in page
    number = answer.json()["browser"]
    assert client.post(reverse("browser-removals", args=[number])).status_code == 303
    assert client.post(reverse("browser-removals", args=[number])).status_code == 404
    assert client.post(reverse("browsers"), its.said | {"again": "1"}).status_code == 410
    assert client.post(reverse("browsers"), {"endpoint": "x" * 5000}).status_code == 422
    settings.HOLDPOINT_VAPID_KEY = ""
    assert client.post(reverse("browsers"), its.said).status_code == 409


def sign_in(user: User, client: Client | None = None) -> Client:
    client = client or Client()
    assert client.post(reverse("account_login"), {"login": user.username, "password": PASSWORD}).status_code == 302
    return client


def turned_on(user: User, push_service: PushService) -> Client:
    client = sign_in(user)
    assert client.post(reverse("browsers"), push_service.subscribe(vapid.public_key()).said).status_code == 201
    return client


def count(user: User) -> int:
    return len(WebPush().addresses(people=[user.pk]))


@pytest.mark.parametrize("way", ["account_logout", "admin:logout"])
def test_signing_out_ends_the_messages_of_that_browser_alone(push_service: PushService, way: str) -> None:
    """The script unsubscribed, and where it failed the next person read the messages of the one before."""
    user = make_user("Ann Okafor", password=PASSWORD)
    User.objects.filter(pk=user.pk).update(is_staff=True)
    here, _there = (turned_on(user, push_service) for _ in range(2))
    here.post(reverse(way))
    assert count(user) == 1


@pytest.mark.parametrize("way", ["expired", "cleared"])
def test_after_a_session_they_say_only_that_there_is_one_until_the_same_person_signs_in_again(
    push_service: PushService, way: str
) -> None:
    """Titles of Ann's gates came up at a shared computer hours after her session had expired."""
    user = make_user("Ann Okafor", password=PASSWORD)
    here = turned_on(user, push_service)
    rows = Session.objects.filter(session_key=digest_of_key(here.cookies["sessionid"].value))
    rows.update(expire_date=timezone.now() - timedelta(seconds=1))
    if way == "cleared":
        rows.delete()
    [there] = WebPush().addresses(people=[user.pk])
    assert not there.signed_in
    page = signed_in(user).get(reverse("notifications")).content.decode()
    assert "Your session there has expired" in page
    sign_in(user, here)
    [there] = WebPush().addresses(people=[user.pk])
    assert there.signed_in


def test_a_session_that_is_ended_by_a_password_or_from_elsewhere_ends_them(push_service: PushService) -> None:
    """Its sessions opened no page any more, and were told of gates for hours."""
    user = make_user("Ann Okafor", password=PASSWORD)
    turned_on(user, push_service)
    user.set_password("other sesame 77")
    user.save()
    assert count(user) == 0
    user = make_user("Ann Okafor", password=PASSWORD)
    phone, here = (turned_on(user, push_service) for _ in range(2))
    row = SignedIn.objects.get(session_key=digest_of_key(phone.cookies["sessionid"].value))
    here.post(reverse("account-session-removals", args=[row.pk]))
    assert count(user) == 1


def test_whoever_signs_in_next_in_a_browser_is_not_shown_the_messages_of_the_one_before(
    push_service: PushService,
) -> None:
    """Ann's session had expired. The titles of her gates came up in the browser in which Bob had signed in."""
    user, other = make_user("Ann Okafor", password=PASSWORD), make_user("Bob Lind", password=PASSWORD)
    here = turned_on(user, push_service)
    del here.cookies["sessionid"]  # expired
    sign_in(other, here)
    assert count(user) == 0


@pytest.mark.parametrize("way", ["others", "password"])
def test_ending_all_others_ends_them_in_browsers_whose_session_is_over_as_well(
    push_service: PushService, way: str
) -> None:
    """Whoever had turned them on with a stolen password was told of gates after it was changed."""
    user = make_user("Ann Okafor", password=PASSWORD)
    turned_on(user, push_service).session.flush()
    here = turned_on(user, push_service)
    if way == "others":
        here.post(reverse("account-sessions-others-removals"))
    else:
        new = {"oldpassword": PASSWORD, "password1": "other sesame 77", "password2": "other sesame 77"}
        here.post(reverse("account_change_password"), new)
    assert count(user) == 1
    assert here.session[pushed.NUMBER] == WebPush().addresses(people=[user.pk])[0].id
