"""A forgotten password: a link by mail, which works once, for an hour, and signs nobody in by itself."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client

from checkpoints.models import Event
from config.sign_in import addresses
from tests.config.sign_in.test_factors import add_app
from tests.factories import make_user
from tests.factories.events import data_of
from tests.harness.signed_in_clients import confirmed, signed_in

PASSWORD, NEW = "open sesame again", "another long phrase"


@pytest.fixture(autouse=True)
def mails(settings: Any, tmp_path: Path) -> Any:
    """Return mails() -> the mails sent since, as texts; they go into files, as they do until a server is named."""
    settings.EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    settings.EMAIL_FILE_PATH = str(tmp_path)
    cache.clear()
    yield lambda: [each.read_text() for each in sorted(tmp_path.iterdir(), key=lambda each: each.stat().st_mtime_ns)]
    cache.clear()


def somebody() -> User:
    user = make_user("Ann Okafor", password=PASSWORD)
    user.email = f"{user.username}@example.org"
    user.save()
    return user


def link_in(mail: str) -> str:
    found = re.search(r"http://\S+", mail.partition("within one hour")[2])
    assert found
    return found[0]


def asks(address: str, client: Client | None = None, **more: Any) -> Any:
    return (client or Client()).post("/accounts/password/reset/", {"email": address}, **more)


def test_the_link_sets_a_new_password_once_and_ends_all_sessions(mails: Any, settings: Any) -> None:
    user = somebody()
    there = signed_in(user)
    asks(user.email, headers={"Host": "localhost"})
    [mail] = mails()
    link = link_in(mail)
    assert link.startswith(settings.HOLDPOINT_ORIGINS[0]), "whatever host the request names"
    client = Client()
    form = client.get(link.removeprefix(settings.HOLDPOINT_ORIGINS[0]), follow=True)
    before = user.password
    user.refresh_from_db()
    assert user.password == before, "opening it changes nothing"
    done = client.post(form.request["PATH_INFO"], {"password1": NEW, "password2": NEW})
    assert done.status_code == 302
    user.refresh_from_db()
    assert user.check_password(NEW)
    assert client.get("/").status_code == 302, "nor does it sign in"
    assert there.get("/").status_code == 302
    again = Client().get(link.removeprefix(settings.HOLDPOINT_ORIGINS[0]), follow=True)
    assert "works no more" in again.content.decode()
    assert "was reset by a link" in mails()[-1]
    events = Event.objects.filter(subject=f"user:{user.pk}", kind="user.password_changed")
    assert [data_of(each)["address"] for each in events][-1]


def test_it_says_the_same_of_addresses_that_no_account_has(mails: Any) -> None:
    user = somebody()
    known, unknown = asks(user.email), asks("nobody@example.org")
    assert (known.status_code, known["Location"]) == (unknown.status_code, unknown["Location"])
    assert len(mails()) == 1


def test_accounts_without_a_password_get_none_by_mail_nor_those_switched_off(mails: Any) -> None:
    sso, off = somebody(), somebody()
    sso.set_unusable_password()
    sso.save()
    User.objects.filter(pk=off.pk).update(is_active=False)
    asks(sso.email)
    asks(off.email)
    assert mails() == []


@pytest.mark.parametrize(
    ("one", "other", "are"),
    [
        ("Mike@Example.org", "mike@example.ORG", True),
        ("m\u0131ke@example.org", "m\u0131ke@example.org", True),
        ("mike@example.org", "m\u0131ke@example.org", False),
        ("m\u0131ke@example.org", "MIKE@example.org", False),
        ("kim@example.org", "\u212aim@example.org", False),
    ],
)
def test_a_letter_that_the_database_takes_for_another_opens_nobodys_account(one: str, other: str, are: bool) -> None:
    """A link to the account of mike@ was sent to m\u0131ke@, whose mailbox is somebody else's."""
    assert addresses.same(one, other) is are


def test_a_second_factor_is_asked_for_all_the_same(mails: Any, settings: Any) -> None:
    user = somebody()
    add_app(confirmed(user))
    asks(user.email)
    link = link_in(mails()[-1]).removeprefix(settings.HOLDPOINT_ORIGINS[0])
    client = Client()
    form = client.get(link, follow=True)
    done = client.post(form.request["PATH_INFO"], {"password1": NEW, "password2": NEW})
    assert done.status_code == 302
    sent = client.post("/accounts/login/", {"login": user.username, "password": NEW})
    assert sent["Location"] == "/accounts/second-step/"


def test_changes_of_factors_are_told_by_mail_and_a_dead_mail_server_stops_nothing(mails: Any, settings: Any) -> None:
    user = somebody()
    add_app(confirmed(user))
    assert any("An authenticator app was added." in each for each in mails())
    settings.EMAIL_BACKEND, settings.EMAIL_PORT = "django.core.mail.backends.smtp.EmailBackend", 1
    other = somebody()
    add_app(confirmed(other))
    assert asks(other.email).status_code == 302


def test_links_are_few(mails: Any) -> None:
    user = somebody()
    *_, last = [asks(user.email) for _ in range(7)]
    assert last.status_code == 429
    assert "<h1>Too many tries</h1>" in last.content.decode()
    assert 'class="topbar"' in last.content.decode()
    assert len(mails()) <= 5
