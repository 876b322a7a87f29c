"""One's own profile: a name that is nobody else's, and choices that follow their person into each browser."""

from __future__ import annotations

from functools import partial

import pytest
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.utils import timezone

from approvals import time_zones
from approvals.models import Profile
from checkpoints.models import Event
from tests.factories import make_team, make_user
from tests.factories.events import data_of
from tests.harness.racing_threads import race
from tests.harness.signed_in_clients import signed_in

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
    client.post("/account/changes/", {**FORM, "zone": "", "theme": "", "hotkeys": "on"})
    assert {client.cookies[name].value for name in ("hp-own-zone", "hp-theme", "hp-keys")} == {""}


def test_the_chosen_zone_comes_before_the_browsers() -> None:
    request = RequestFactory().get("/")
    respond = time_zones.middleware(lambda _: HttpResponse(timezone.get_current_timezone_name()))
    request.COOKIES = {"hp-zone": "America/New_York", "hp-own-zone": "Asia/Kolkata"}
    assert b"".join(respond(request)) == b"Asia/Kolkata"
    request.COOKIES["hp-own-zone"] = "Mars/Base"
    assert b"".join(respond(request)) == b"America/New_York"


def test_junk_is_no_choice() -> None:
    user = make_user("Ann Okafor")
    signed_in(user).post("/account/changes/", {**FORM, "zone": "Mars/Base", "theme": "pink"})
    kept = Profile.objects.get(user=user)
    assert (kept.zone, kept.theme, kept.hotkeys) == ("", "", False)


@pytest.mark.parametrize("wrong", ["taken", "split", "apart", "alike", "hidden", "empty", "long"])
def test_a_name_by_which_others_would_take_them_for_somebody_else_is_refused(wrong: str) -> None:
    """A colleague's name with a letter and its mark in two characters was accepted."""
    make_user("Bob Lindqvist")
    make_user("Zo\u00eb Sandoval")
    user = make_user("Ann Okafor")
    typed = {
        "apart": ("Zoe\u0308", "Sandoval"),
        "taken": ("bob", "LINDQVIST"), "split": ("Bob Lindqvist", ""),
        "alike": ("B\u043eb", "Lindqvist"), "hidden": ("Bob\u200b", "Lindqvist"),
        "empty": (" ", ""), "long": ("x" * 151, ""),
    }[wrong]  # fmt: skip
    answer = signed_in(user).post("/account/changes/", {**FORM, "first_name": typed[0], "last_name": typed[1]})
    assert answer.status_code == 422
    assert "was not saved" in answer.content.decode()
    user.refresh_from_db()
    assert user.get_full_name() == "Ann Okafor"
    assert not Profile.objects.filter(user=user).exists()


def test_a_name_is_stored_in_one_form() -> None:
    user = make_user("Ann Okafor")
    signed_in(user).post("/account/changes/", {**FORM, "first_name": "Zoe\u0308  Q", "last_name": "Sandoval"})
    user.refresh_from_db()
    assert user.first_name == "Zo\u00eb Q"
    make_user("Zoe\u0301 Reyes")
    form = {**FORM, "first_name": "Zo\u00e9", "last_name": "Reyes"}
    assert signed_in(user).post("/account/changes/", form).status_code == 422


def test_of_two_who_take_one_name_at_the_same_time_one_is_told_so() -> None:
    people = [signed_in(make_user(name)) for name in ("Ann Okafor", "Bob Lindqvist")]
    for number in range(6):
        form = {**FORM, "first_name": "Twin", "last_name": "X" * (number + 1)}
        answers = race([partial(client.post, "/account/changes/", form) for client in people])
        assert sorted(each.status_code for each in answers) == [302, 422]
        [refused] = [each for each in answers if each.status_code == 422]
        assert "Somebody else has this name" in refused.content.decode()


def test_a_new_name_is_an_event_that_does_not_say_it() -> None:
    user = make_user("Ann Okafor")
    signed_in(user).post("/account/changes/", {**FORM, "last_name": "Okafor-Reyes of Support"})
    user.refresh_from_db()
    assert user.last_name == "Okafor-Reyes of Support"
    [told] = Event.objects.filter(kind="user.changed", subject=f"user:{user.pk}")
    assert (data_of(told)["fields"], told.actor) == (["last_name"], f"user:{user.pk}")
    assert "Reyes" not in bytes(told.data).decode()
