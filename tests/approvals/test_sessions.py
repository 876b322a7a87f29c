"""A session's cookie is a stranger's to write, its person is read anew by each request, and has a profile."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from django.contrib.auth import BACKEND_SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.utils import timezone

from approvals import time_zones
from approvals.models import Profile
from approvals.sessions import SessionStore, digest_of_key
from checkpoints.models import Event
from tests.factories import ann, make_gate, make_team, make_user
from tests.factories.events import data_of
from tests.harness.racing_threads import race
from tests.harness.sent_statements import sent
from tests.harness.signed_in_clients import session_of, signed_in


@pytest.mark.parametrize("cookie", ["\0aaaaaaaaaa", "é" * 32, "a" * 41, "short", "a" * 31 + "'"])
def test_a_cookie_that_cannot_be_a_key_is_nobodys(cookie: str) -> None:
    """One with a NUL was an error of the server's, and a traceback in its log for whoever liked to write one."""
    client = Client()
    client.cookies["sessionid"] = cookie
    response = client.get("/accounts/login/")
    assert response.status_code == 200
    client.cookies["sessionid"] = cookie
    assert client.get("/").status_code == 302


def test_what_the_database_holds_signs_nobody_in() -> None:
    """The table held the very keys that cookies hold: whoever read it was anybody who was signed in."""
    person = ann(make_team())
    key, client = session_of(person), Client()
    rows = list(Session.objects.values_list("session_key", flat=True))
    assert key not in rows
    assert digest_of_key(key) in rows
    for each in (digest_of_key(key), digest_of_key(key).lower()):
        client.cookies["sessionid"] = each
        assert client.get("/").status_code == 302


def test_signing_out_and_a_new_password_end_the_session_that_is_stored() -> None:
    client = signed_in(ann(make_team()))
    key = client.cookies["sessionid"].value
    client.post("/accounts/logout/")
    assert not Session.objects.filter(session_key=digest_of_key(key)).exists()
    session = SessionStore()
    session["a"] = 1
    session.save()
    before = session.session_key
    session.cycle_key()
    assert not SessionStore().exists(str(before))
    assert SessionStore(session.session_key)["a"] == 1
    session.flush()
    assert session.session_key is None


async def test_the_store_hashes_keys_where_it_is_asked_from_a_loop_too() -> None:
    session = SessionStore()
    await session.aset("a", 1)
    await session.asave()
    key = str(session.session_key)
    assert await Session.objects.filter(session_key=digest_of_key(key)).aexists()
    assert not await Session.objects.filter(session_key=key).aexists()
    assert await SessionStore(key).aget("a") == 1
    assert await session.aexists(key)
    await session.adelete()
    assert not await session.aexists(key)


def reads(client: Client) -> bool:
    return client.get("/inbox/list/").status_code == 200


@pytest.mark.parametrize("change", ["deactivated", "password", "removed", "backend"])
def test_a_session_ends_with_what_it_stands_on(settings: Any, change: str) -> None:
    person = ann(make_team())
    client = signed_in(person)
    assert reads(client)
    if change == "deactivated":
        User.objects.filter(pk=person.pk).update(is_active=False)
    elif change == "password":
        person.set_password("another one, and long enough")
        person.save()
    elif change == "removed":
        person.delete()
    else:
        settings.AUTHENTICATION_BACKENDS = settings.AUTHENTICATION_BACKENDS[1:]
    assert not reads(client)


def test_a_session_of_a_retired_secret_goes_on_under_the_new_one(settings: Any) -> None:
    client = signed_in(ann(make_team()))
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another secret, and longer than the fifty characters asked for"
    assert reads(client)
    settings.SECRET_KEY_FALLBACKS = []
    assert reads(client)


def test_a_forged_cookie_and_a_session_without_a_person_sign_nobody_in() -> None:
    client = Client()
    client.cookies["sessionid"] = "abcdefgh12345678"
    assert not reads(client)
    client = signed_in(ann(make_team()))
    session = client.session
    del session[BACKEND_SESSION_KEY]
    session.save()
    assert not reads(client)


def test_what_a_person_may_see_is_read_by_each_request_and_the_person_once() -> None:
    gate, person = make_gate(team=(team := make_team())), ann(team)
    client = signed_in(person)
    with sent() as statements:
        assert client.get(f"/gates/{gate.pk}/status/").status_code == 200
    assert sum(each.startswith('SELECT "auth_user"."id"') for each in statements) == 1, statements
    person.groups.clear()
    assert client.get(f"/gates/{gate.pk}/status/").status_code == 404


PASSWORD = "open sesame again"
FORM = {"first_name": "Ann", "last_name": "Okafor", "zone": "Asia/Kolkata", "theme": "dark"}


def test_choices_are_saved_and_come_with_the_next_sign_in() -> None:
    user = make_user("Ann Okafor", make_team("Support"), password=PASSWORD)
    client = signed_in(user)
    page = client.get("/account/").content.decode()
    assert "Support" in page
    saved = client.post("/account/changes/", FORM)
    assert saved["Location"] == "/account/"
    other = Client()
    other.post("/accounts/login/", {"login": user.username, "password": PASSWORD})
    for each in (client, other):
        said = {name: each.cookies[name].value for name in ("hp-own-zone", "hp-theme", "hp-keys")}
        assert said == {"hp-own-zone": "Asia/Kolkata", "hp-theme": "dark", "hp-keys": "off"}
    client.post("/account/changes/", {**FORM, "zone": "Mars/Base", "theme": "pink", "hotkeys": "on"})
    assert {client.cookies[name].value for name in ("hp-own-zone", "hp-theme", "hp-keys")} == {""}


def test_the_chosen_zone_comes_before_the_browsers() -> None:
    request = RequestFactory().get("/")
    respond = time_zones.middleware(lambda _: HttpResponse(timezone.get_current_timezone_name()))
    request.COOKIES = {"hp-zone": "America/New_York", "hp-own-zone": "Asia/Kolkata"}
    assert b"".join(respond(request)) == b"Asia/Kolkata"
    request.COOKIES["hp-own-zone"] = "Mars/Base"
    assert b"".join(respond(request)) == b"America/New_York"


@pytest.mark.parametrize("wrong", ["split", "apart", "alike", "hidden", "empty", "long"])
def test_a_name_by_which_others_would_take_them_for_somebody_else_is_refused(wrong: str) -> None:
    """A colleague's name with a letter and its mark in two characters was accepted."""
    make_user("Bob Lindqvist")
    make_user("Zo\u00eb Sandoval")
    user = make_user("Ann Okafor")
    typed = {
        "apart": ("Zoe\u0308", "Sandoval"),
        "split": ("bob LINDQVIST", ""),
        "alike": ("B\u043eb", "Lindqvist"), "hidden": ("Bob\u200b", "Lindqvist"),
        "empty": (" ", ""), "long": ("x" * 151, ""),
    }[wrong]  # fmt: skip
    answer = signed_in(user).post("/account/changes/", {**FORM, "first_name": typed[0], "last_name": typed[1]})
    assert answer.status_code == 422
    assert "was not saved" in answer.content.decode()
    user.refresh_from_db()
    assert user.get_full_name() == "Ann Okafor"
    assert not Profile.objects.filter(user=user).exists()


def test_of_two_who_take_one_name_at_the_same_time_one_is_told_so() -> None:
    people = [signed_in(make_user(name)) for name in ("Ann Okafor", "Bob Lindqvist")]
    for number in range(2):
        form = {**FORM, "first_name": "Twin", "last_name": "X" * (number + 1)}
        answers = race([partial(client.post, "/account/changes/", form) for client in people])
        assert sorted(each.status_code for each in answers) == [302, 422]
        [refused] = [each for each in answers if each.status_code == 422]
        assert "Somebody else has this name" in refused.content.decode()


def test_a_new_name_is_stored_in_one_form_and_is_an_event_that_does_not_say_it() -> None:
    user = make_user("Ann Okafor")
    signed_in(user).post("/account/changes/", {**FORM, "last_name": "Zoe\u0308  Reyes of Support"})
    user.refresh_from_db()
    assert user.last_name == "Zo\u00eb Reyes of Support"
    [told] = Event.objects.filter(kind="user.changed", subject=f"user:{user.pk}")
    assert (data_of(told)["fields"], told.actor) == (["last_name"], f"user:{user.pk}")
    assert "Reyes" not in bytes(told.data).decode()
