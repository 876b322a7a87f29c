"""A forgotten password: a link by mail, which works once, for an hour, and signs nobody in by itself."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client

from approvals.accounts import factors, sign_ins
from approvals.models import Message
from approvals.notifications import delivering, log
from checkpoints.models import Event
from config.sign_in import openid
from tests.approvals.notifications.conftest import nothing_told_yet  # noqa: F401 - a fixture
from tests.approvals.notifications.told import due, fanned
from tests.config.sign_in.test_factors import add_app
from tests.factories import make_user
from tests.factories.events import data_of
from tests.harness import horizon
from tests.harness.sent_statements import sent
from tests.harness.signed_in_clients import confirmed, signed_in

PASSWORD, NEW = "open sesame again", "another long phrase"


@pytest.fixture(autouse=True)
def mails(settings: Any, tmp_path: Path, nothing_told_yet: None) -> Any:  # noqa: F811 - the fixture
    """Return mails() -> the mails sent since, as texts; they go into files, as they do until a server is named."""
    settings.EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    settings.EMAIL_FILE_PATH = str(tmp_path)
    cache.clear()

    def arrived() -> list[str]:
        horizon.reached()
        fanned()
        delivering.deliver("email", seconds=5.0)
        return [each.read_text() for each in sorted(tmp_path.iterdir(), key=lambda each: each.stat().st_mtime_ns)]

    yield arrived
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
    there, client = signed_in(user), signed_in(somebody())
    asks(user.email, headers={"Host": "localhost"})
    [mail] = mails()
    link = link_in(mail)
    assert link.startswith(settings.HOLDPOINT_ORIGINS[0]), "whatever host the request names"
    form = client.get(link.removeprefix(settings.HOLDPOINT_ORIGINS[0]), follow=True)
    assert client.get("/").status_code == 200, "nobody is signed out by a link that anybody can send them"
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


def test_the_page_takes_as_long_for_addresses_that_no_account_has(settings: Any) -> None:
    """The mail was sent before the page answered: its time told who has an account, and a hung server held it up."""
    user = somebody()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = server.getsockname()
        settings.EMAIL_TIMEOUT = 0.1
        found = []
        for address in (user.email, "nobody@example.org"):
            with sent() as statements:
                asks(address)
            found.append([each.partition(" ")[0] for each in statements])
        with pytest.raises(BlockingIOError):
            server.accept()
    assert found[0] == found[1]
    assert "INSERT" in found[0]


def test_a_link_waits_for_a_mail_server_that_is_away_and_its_person_reads_of_it(mails: Any, settings: Any) -> None:
    """The link was lost, and nothing but the log of the process said so."""
    user = somebody()
    backend, settings.EMAIL_BACKEND = settings.EMAIL_BACKEND, "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_PORT = 1
    asks(user.email)
    asks("nobody@example.org")
    assert mails() == []
    [line] = log.of_person(user)
    assert (line.kind, line.status, line.why) == ("link for a new password", "pending", "the server does not answer")
    settings.EMAIL_BACKEND = backend
    due()
    [mail] = mails()
    assert "List-Unsubscribe" not in mail
    assert "Choose what you are told" not in mail
    assert [each.status for each in log.of_person(user)] == ["sent"]
    assert [each.word for each in Message.objects.filter(user=None)] == ["no_account"]


def test_a_letter_that_the_database_takes_for_another_opens_nobodys_account() -> None:
    """A link to the account of mike@ was sent to m\u0131ke@, whose mailbox is somebody else's."""
    assert openid.is_same_address("Mike@Example.org", "mike@example.ORG")
    assert not openid.is_same_address("mike@example.org", "m\u0131ke@example.org")
    assert not openid.is_same_address("kim@example.org", "\u212aim@example.org")


def test_changes_of_factors_are_told_by_mail_and_a_dead_mail_server_stops_nothing(mails: Any, settings: Any) -> None:
    user = somebody()
    client = confirmed(user)
    client.cookies["hp-own-zone"] = "Pacific/Kiritimati"  # 14 hours ahead
    add_app(client)
    added = Event.objects.get(subject=f"user:{user.pk}", kind="user.factor_added")
    [mail] = [each for each in mails() if "An authenticator app was added." in each]
    assert f"When: {added.at:%-d %b %Y, %H:%M} (UTC)" in mail
    before = len(mails())
    settings.EMAIL_BACKEND, settings.EMAIL_PORT = "django.core.mail.backends.smtp.EmailBackend", 1
    other = somebody()
    add_app(confirmed(other))
    assert asks(other.email).status_code == 302
    assert len(mails()) == before
    settings.EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    due()
    assert sum("An authenticator app was added." in each for each in mails()[before:]) == 1, "it was lost"


def test_it_says_the_same_of_addresses_that_no_account_has_or_whose_account_takes_no_link(mails: Any) -> None:
    user, sso, off = somebody(), somebody(), somebody()
    sso.set_unusable_password()
    sso.save()
    User.objects.filter(pk=off.pk).update(is_active=False)
    told = [asks(address) for address in (user.email, "nobody@example.org", sso.email, off.email)]
    assert len({(each.status_code, each["Location"]) for each in told}) == 1
    assert len(mails()) == 1


def test_what_somebody_else_does_to_an_account_is_told_to_its_person(mails: Any) -> None:
    user, other = somebody(), make_user("Vera Admin", superuser=True, password=PASSWORD)
    add_app(confirmed(user))
    number = factors.list_factors(user)[0].pk
    confirmed(other).post(f"/admin/auth/user/{user.pk}/factor-removals/", {"factor": number})
    assert factors.list_factors(user) == []
    assert all("By: an administrator" in each for each in mails() if "was removed" in each)
    assert any("was removed" in each for each in mails())
    new = {"password1": NEW, "password2": NEW, "usable_password": "true"}
    assert confirmed(other).post(f"/admin/auth/user/{user.pk}/password/", new).status_code == 302
    [mail] = [each for each in mails() if "A new password was set." in each]
    assert "By: an administrator" in mail


def test_links_are_few(mails: Any) -> None:
    user = somebody()
    *_, last = [asks(user.email) for _ in range(7)]
    assert last.status_code == 429
    assert "<h1>Too many tries</h1>" in last.content.decode()
    assert 'class="topbar"' in last.content.decode()
    assert len(mails()) <= 5


@pytest.mark.parametrize("on_again", [False, True])
def test_a_link_of_before_an_account_was_switched_off_works_no_more(on_again: bool) -> None:
    """It set a password while the account was off, which then opened it once it was on again."""
    user, admin = somebody(), confirmed(make_user("Root", superuser=True))
    link = sign_ins.reset_path(user)
    form = {"username": user.username, "first_name": user.first_name, "email": user.email}
    for switched in [{}, {"is_active": "on"}][: 1 + on_again]:
        assert admin.post(f"/admin/auth/user/{user.pk}/change/", form | switched).status_code == 302
    assert User.objects.get(pk=user.pk).is_active == on_again
    client = Client()
    page = client.get(link, follow=True)
    assert "works no more" in page.content.decode()
    client.post(page.request["PATH_INFO"], {"password1": NEW, "password2": NEW})
    assert User.objects.get(pk=user.pk).check_password(PASSWORD)
    assert on_again == ("works no more" not in client.get(sign_ins.reset_path(user), follow=True).content.decode())
