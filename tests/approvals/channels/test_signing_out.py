"""Whoever signed out of a browser, there or from elsewhere, is told nothing there any more, whatever its script did."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from approvals.accounts import pushed
from approvals.channels import vapid
from approvals.channels.web_push import WebPush
from approvals.models import SignedIn
from approvals.sessions import digest_of_key
from tests.factories import make_user
from tests.harness.signed_in_clients import signed_in

from .push_service import PushService

PASSWORD = "open sesame again"


def sign_in(user: User, client: Client | None = None) -> Client:
    client = client or Client()
    assert client.post(reverse("account_login"), {"login": user.username, "password": PASSWORD}).status_code == 302
    return client


def turned_on(user: User, push_service: PushService) -> Client:
    """Sign in, and turn messages on in that browser."""
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


def test_a_later_session_of_the_browser_ends_them_too(push_service: PushService) -> None:
    user = make_user("Ann Okafor", password=PASSWORD)
    here = turned_on(user, push_service)
    del here.cookies["sessionid"]  # expired
    assert count(user) == 1
    sign_in(user, here).post(reverse("account_logout"))
    assert count(user) == 0


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


def test_whoever_has_many_browsers_sends_as_many_tests_as_others(push_service: PushService) -> None:
    """A message to each of five counted as five tests: the next one was refused for ten minutes."""
    user = make_user("Ann Okafor", password=PASSWORD)
    *_, here = (turned_on(user, push_service) for _ in range(5))
    tests = [here.post(reverse("notification-tests"), {"channel": "push"}).status_code for _ in range(6)]
    assert tests == [303] * 5 + [422]


def test_a_password_that_is_set_by_other_means_ends_them(push_service: PushService) -> None:
    """Its sessions opened no page any more, and were told of gates for hours."""
    user = make_user("Ann Okafor", password=PASSWORD)
    turned_on(user, push_service)
    user.set_password("other sesame 77")
    user.save()
    assert count(user) == 0


def test_whoever_signs_in_next_in_a_browser_is_not_shown_the_messages_of_the_one_before(
    push_service: PushService,
) -> None:
    """Ann's session had expired. The titles of her gates came up in the browser in which Bob had signed in."""
    user, other = make_user("Ann Okafor", password=PASSWORD), make_user("Bob Lind", password=PASSWORD)
    here = turned_on(user, push_service)
    del here.cookies["sessionid"]  # expired
    sign_in(other, here)
    assert count(user) == 0


def test_a_session_that_is_ended_from_elsewhere_ends_them(push_service: PushService) -> None:
    user = make_user("Ann Okafor", password=PASSWORD)
    phone, here = (turned_on(user, push_service) for _ in range(2))
    row = SignedIn.objects.get(session_key=digest_of_key(phone.cookies["sessionid"].value))
    here.post(reverse("account-session-removals", args=[row.pk]))
    assert count(user) == 1


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
