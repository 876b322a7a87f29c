"""Who tried to get in: failed sign-ins, failed confirmations and new passwords are events, and a flood is a few."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.management import call_command
from django.test import Client

from checkpoints.models import Event
from config.sign_in import attempts as sign_ins
from tests.factories import unique
from tests.factories.events import data_of
from tests.harness.signed_in_clients import signed_in

PASSWORD = "a long enough phrase"
ADDRESS = "203.0.113.9"


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A minute in which nothing failed yet and that does not end, and sign-ins that are not limited."""
    monkeypatch.setattr(sign_ins, "minute", sign_ins.MinuteCounter())
    sign_ins.minute.ends = float("inf")
    cache.clear()
    yield
    cache.clear()


def account() -> User:
    return User.objects.create_user(unique("getting-in"), password=PASSWORD)


def sign_in(name: str, password: str = "wrong", address: str = ADDRESS) -> Any:
    cache.clear()
    return Client(REMOTE_ADDR=address).post("/accounts/login/", {"login": name, "password": password})


def told(kind: str, subject: str) -> list[dict[str, Any]]:
    return [data_of(each) for each in Event.objects.filter(kind=kind, subject=subject).order_by("pk")]


def test_a_failed_sign_in_is_told_with_the_account_and_the_address() -> None:
    """It left no trace."""
    person = account()
    sign_in(person.username)
    assert told("user.sign_in_failed", f"user:{person.pk}") == [{"address": ADDRESS, "count": 1}]
    event = Event.objects.get(kind="user.sign_in_failed", subject=f"user:{person.pk}")
    assert (event.actor, event.team_id) == ("system", None)
    off, fine = account(), account()
    User.objects.filter(pk=off.pk).update(is_active=False)
    sign_in(off.username, PASSWORD)
    assert len(told("user.sign_in_failed", f"user:{off.pk}")) == 1
    assert sign_in(fine.username, PASSWORD).status_code == 302
    assert told("user.sign_in_failed", f"user:{fine.pk}") == []


def test_a_name_that_no_account_has_is_not_stored_and_has_a_digest_of_its_own() -> None:
    names = []
    for number, typed in enumerate(["my own passphrase, in the wrong field"] * 2 + ["x\r\ny", "a" * 150]):
        sign_in(typed, address=(address := f"198.51.100.{number}"))
        [data] = told("user.sign_in_failed", f"address:{address}")
        assert set(data) == {"address", "count", "name"}
        assert typed not in json.dumps(data)
        names.append(data["name"])
    assert names[0] == names[1] != names[2] != names[3]
    assert {len(name) for name in names} == {16}


def test_of_many_failures_each_power_of_ten_is_told_and_another_minute_begins_anew() -> None:
    assert [count for count in range(1, 20_000) if sign_ins._is_told(count)] == [1, 10, 100, 1_000, 10_000]
    minute = sign_ins.MinuteCounter()
    assert [minute.count("a"), minute.count("a"), minute.count("b")] == [1, 2, 1]
    minute.ends = 0.0
    assert minute.count("a") == 1


def test_a_flood_from_many_addresses_is_told_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign_ins, "SINGLE", 5)
    before = Event.objects.filter(kind="user.sign_in_failed").count()
    for number in range(12):
        sign_in(f"nobody {number}", address=f"198.18.0.{number}")
    assert Event.objects.filter(kind="user.sign_in_failed").count() - before == 6
    last = told("user.sign_in_failed", "address:many addresses")[-1]
    assert last == {"address": "many addresses", "count": 10}


def test_a_failed_confirmation_or_a_wrong_old_password_is_told_of_whoever_is_signed_in() -> None:
    person = account()
    client = signed_in(person)
    client.post("/accounts/reauthenticate/", {"password": "wrong"}, REMOTE_ADDR=ADDRESS)
    assert told("user.confirmation_failed", f"user:{person.pk}") == [{"address": ADDRESS, "count": 1}]
    assert Event.objects.get(kind="user.confirmation_failed", subject=f"user:{person.pk}").actor == f"user:{person.pk}"
    assert told("user.sign_in_failed", f"user:{person.pk}") == []
    person = account()
    form = {"oldpassword": "wrong", "password1": "another long phrase", "password2": "another long phrase"}
    signed_in(person).post("/accounts/password/change/", form, REMOTE_ADDR=ADDRESS)
    assert told("user.confirmation_failed", f"user:{person.pk}") == [{"address": ADDRESS, "count": 1}]


def test_a_new_password_is_told_on_its_page_and_by_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    person = account()
    form = {"oldpassword": PASSWORD, "password1": "another long phrase", "password2": "another long phrase"}
    signed_in(person).post("/accounts/password/change/", form, REMOTE_ADDR=ADDRESS)
    person.refresh_from_db()
    assert person.check_password("another long phrase")
    assert told("user.password_changed", f"user:{person.pk}")[-1] == {"address": ADDRESS}
    assert Event.objects.filter(subject=f"user:{person.pk}").latest("pk").actor == f"user:{person.pk}"
    person = account()
    monkeypatch.setattr("getpass.getpass", lambda *_, **__: "another long phrase")
    call_command("changepassword", person.username, verbosity=0)
    assert told("user.password_changed", f"user:{person.pk}")[-1] == {"address": ""}
