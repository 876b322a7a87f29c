"""Second factors and sessions: each code works once, no copy of the database reads secrets, and sessions are ended."""

from __future__ import annotations

import re
import time
from io import StringIO
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal import auth as totp
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from playwright.sync_api import expect

from approvals.accounts import factors, sign_ins
from approvals.models import SignedIn
from approvals.sessions import digest_of_key
from checkpoints import actors
from checkpoints.models import Event
from config.sign_in import attempts
from tests.factories import make_user
from tests.factories.events import data_of
from tests.harness.browser_checks import check, is_live, watched
from tests.harness.racing_threads import race
from tests.harness.signed_in_clients import confirmed, signed_in
from tests.harness.waiting import until

PASSWORD = "open sesame again"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
SAFARI = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Version/18.0 Mobile Safari/604.1"


@pytest.fixture(autouse=True)
def fresh_limits() -> Any:
    cache.clear()
    yield
    cache.clear()


def person(name: str = "Ann Okafor") -> Any:
    return make_user(name, password=PASSWORD)


def add_app(client: Client) -> str:
    page = client.get("/account/security/app/")
    secret: str = page.context["form"].secret
    added = client.post("/account/security/app/", {"code": code_of(secret)})
    assert added["Location"] == "/account/security/recovery-codes/", added.content.decode()
    return secret


def code_of(secret: str, ahead: int = 0) -> str:
    counter = int(time.time()) // 30 + ahead
    return str(totp.format_hotp_value(totp.hotp_value(secret, counter)))


def first_step(user: Any) -> Client:
    client = Client()
    sent = client.post("/accounts/login/", {"login": user.username, "password": PASSWORD})
    assert sent["Location"] == "/accounts/second-step/"
    return client


def second_step(client: Client, code: str) -> Any:
    return client.post("/accounts/second-step/", {"code": code})


def is_in(client: Client) -> bool:
    return client.get("/").status_code == 200


def told(kind: str, user: Any) -> list[dict[str, Any]]:
    return [data_of(each) for each in Event.objects.filter(kind=kind, subject=f"user:{user.pk}").order_by("pk")]


def test_whoever_has_an_app_is_asked_for_its_code() -> None:
    user = person()
    there, owner = signed_in(user), confirmed(user)
    secret = add_app(owner)
    assert (is_in(there), is_in(owner)) == (False, True), "a session of before the first factor ends with it"
    rows = Authenticator.objects.filter(user=user)
    assert {row.type for row in rows} == {"totp", "recovery_codes"}
    assert not any(secret in str(row.data) for row in rows), "no copy of the database reads it"
    client = first_step(user)
    second_step(client, code_of(secret))
    assert not is_in(client), "by the code that added the app"
    second_step(client, code_of(secret, 1))
    assert is_in(client)
    assert [each["factor"] for each in told("user.factor_added", user)] == ["code"]
    assert told("user.signed_in", user)[-1]["method"] == "password+code"


def test_a_code_works_once_in_whatever_process() -> None:
    """allauth remembers used codes in the cache of one process."""
    user = person()
    secret = add_app(confirmed(user))
    code = code_of(secret, 1)
    second_step(first_step(user), code)
    cache.clear()  # as in another process
    client = first_step(user)
    assert "was used before" in second_step(client, code).content.decode()
    assert not is_in(client)
    assert told("user.factor_refused", user)[-1]["method"] == "code"


def test_a_recovery_code_works_once_is_shown_once_and_confirms_only_how_one_signs_in() -> None:
    """It was taken for a new token too, used up, and the token's page asked again."""
    user = person()
    owner = confirmed(user)
    add_app(owner)
    page = owner.get("/account/security/recovery-codes/").content.decode()
    [code, another, *others] = re.findall(r"<code>(\d{8})</code>", page)
    assert len(others) == 8
    assert code not in owner.get("/account/security/recovery-codes/").content.decode()
    confirms = reverse("mfa_reauthenticate")
    offered = owner.get("/accounts/reauthenticate/", {"next": "/tokens/"}).content.decode()
    assert ("Code from your app" in offered, "recovery code" in offered) == (True, False)
    assert "This code is wrong" in owner.post(confirms, {"code": code, "next": "/tokens/"}).content.decode()
    assert "10 codes left" in owner.get("/account/security/").content.decode()
    there = {"next": "/account/security/"}
    assert "or a recovery code" in owner.get("/accounts/reauthenticate/", there).content.decode()
    assert owner.post(confirms, {"code": code, **there}).status_code == 302
    assert "9 codes left" in owner.get("/account/security/").content.decode()
    for used, enters in ((code, False), (another, True), (another, False)):
        client = first_step(user)
        second_step(client, used)
        assert is_in(client) is enters


def test_a_secret_that_no_key_opens_lets_nobody_in_and_takes_no_other_factor_with_it() -> None:
    user = person()
    secret = add_app(confirmed(user))
    app, codes = (Authenticator.objects.get(user=user, type=name) for name in ("totp", "recovery_codes"))
    [code, *_] = codes.wrap().get_unused_codes()
    Authenticator.objects.filter(pk=app.pk).update(data={**app.data, "secret": "of another key"})
    client = first_step(user)
    second_step(client, code_of(secret, 1))
    assert not is_in(client)
    owner = confirmed(user)
    assert "cannot be read" in owner.get("/account/security/").content.decode()
    second_step(client, code)
    assert is_in(client)
    Authenticator.objects.filter(pk=codes.pk).update(data={**codes.data, "seed": "of another key"})
    client = first_step(user)
    assert "cannot be read" in client.get("/accounts/second-step/").content.decode()
    assert factors.has_any(user), "the password alone is not enough either"
    assert owner.post(f"/account/security/factors/{app.pk}/removals/").status_code == 302
    assert not factors.has_any(user)


def test_another_secret_key_still_opens_what_the_old_one_encrypted(settings: Any) -> None:
    user = person()
    secret = add_app(confirmed(user))
    settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = [settings.SECRET_KEY], "another key of many characters 0123"
    client = first_step(user)
    second_step(client, code_of(secret, 1))
    assert is_in(client)
    call_command("reencrypt_factors", stdout=StringIO())
    settings.SECRET_KEY_FALLBACKS = []
    assert all(each.sound for each in factors.list_factors(user))
    codes = Authenticator.objects.get(user=user, type="recovery_codes").wrap().get_unused_codes()
    again = first_step(user)
    second_step(again, codes[0])
    assert is_in(again)


def test_a_factor_is_added_or_removed_only_after_a_confirmation() -> None:
    user = person()
    assert signed_in(user).get("/account/security/app/")["Location"].startswith("/accounts/reauthenticate/")
    owner = confirmed(user)
    add_app(owner)
    row = Authenticator.objects.get(user=user, type="totp")
    address = f"/account/security/factors/{row.pk}/removals/"
    assert signed_in(user).post(address)["Location"].startswith("/accounts/reauthenticate/")
    assert confirmed(person("Bob Lindqvist")).post(address).status_code == 404
    assert factors.has_any(user)
    other = signed_in(user)
    assert owner.post(address).status_code == 302
    assert not Authenticator.objects.filter(user=user).exists(), "recovery codes alone are of no use"
    assert not is_in(other)
    assert {each["factor"] for each in told("user.factor_removed", user)} == {"code", "recovery_code"}


def sign_in(user: User, agent: str = FIREFOX, address: str = "203.0.113.9") -> Client:
    client = Client(headers={"User-Agent": agent}, REMOTE_ADDR=address)
    sent = client.post("/accounts/login/", {"login": user.username, "password": PASSWORD})
    assert sent.status_code == 302
    return client


def number_of(client: Client) -> int:
    found: int = SignedIn.objects.get(session_key=digest_of_key(client.cookies["sessionid"].value)).pk
    return found


def test_each_is_listed_with_its_browser_and_its_address() -> None:
    assert sign_ins.name_browser("") == "Unknown browser"
    user = person()
    desk, phone = sign_in(user), sign_in(user, SAFARI, "198.51.100.4")
    row = SignedIn.objects.get(pk=number_of(desk))
    assert desk.cookies["sessionid"].value not in str(vars(row))
    assert Session.objects.filter(session_key=row.session_key).exists()
    page = desk.get("/account/sessions/").content.decode()
    for words in ("Firefox on Linux", "this session", "203.0.113.9", "Safari on iPhone", "198.51.100.4", "by password"):
        assert words in page
    assert told("user.signed_in", user)[0] == {"address": "203.0.113.9", "method": "password"}
    phone.post("/accounts/logout/")
    assert "Safari on iPhone" not in desk.get("/account/sessions/").content.decode()
    assert told("user.session_ended", user) == [{"count": 1}]


def test_one_is_ended_or_all_others_those_from_before_the_list_too_and_nobody_elses() -> None:
    user = person()
    desk, phone, tablet, older = sign_in(user), sign_in(user, SAFARI), sign_in(user, SAFARI), signed_in(user)
    other = sign_in(person())
    assert other.post(f"/account/sessions/{number_of(phone)}/removals/").status_code == 404
    assert is_in(phone)
    desk.post(f"/account/sessions/{number_of(phone)}/removals/")
    assert [is_in(client) for client in (desk, phone, tablet)] == [True, False, True]
    assert desk.post(f"/account/sessions/{number_of(other)}/removals/").status_code == 404
    assert not SignedIn.objects.filter(session_key=digest_of_key(older.cookies["sessionid"].value)).exists()
    desk.post("/account/sessions/others/removals/")
    assert [is_in(client) for client in (desk, tablet, older, other)] == [True, False, False, True]
    assert told("user.session_ended", user)[-1] == {"count": 2}


def test_a_confirmation_and_a_new_password_keep_this_session_in_the_list() -> None:
    """Both give it another key."""
    user = person()
    desk, phone = sign_in(user), sign_in(user, SAFARI)
    desk.post("/accounts/reauthenticate/", {"password": PASSWORD, "next": "/"})
    assert len(sign_ins.open_sessions(user)) == 2
    new = "another long phrase"
    desk.post("/accounts/password/change/", {"oldpassword": PASSWORD, "password1": new, "password2": new})
    user.refresh_from_db()
    assert [row.pk for row in sign_ins.open_sessions(user)] == [number_of(desk)]
    assert is_in(desk)
    assert not is_in(phone)


def test_the_other_browsers_open_page_is_told_at_once(web: str, browser: Any) -> None:
    """Its socket is closed when the session ends, and not at the next heartbeat."""
    user = person()
    pages, said = [], list[list[str]]()
    for _ in range(2):
        page = browser.new_context(base_url=web).new_page()
        said.append(watched(page))
        page.goto("/accounts/login/")
        page.get_by_label("Username").or_(page.get_by_label("Login")).fill(user.username)
        page.get_by_label("Password", exact=True).fill(PASSWORD)
        page.get_by_role("button", name="Sign in", exact=True).click()
        is_live(page)
        pages.append(page)
    desk, phone = pages
    desk.goto("/account/sessions/")
    assert check(desk, "", said[0]) == []
    phone.evaluate(
        "document.querySelector('hp-live').socket.addEventListener('close', (e) => (window.closed_by = e.code))"
    )
    desk.get_by_role("button", name="Sign out all others").click()
    expect(desk.get_by_role("button", name="Sign out all others")).to_have_count(0)
    until(lambda: phone.evaluate("window.closed_by === 4401"), within=10)  # a heartbeat comes every 15 s
    phone.goto("/")
    expect(phone.get_by_role("heading", name="Sign in")).to_be_visible()


def test_a_name_in_any_letters_signs_in_and_its_browser_is_known_again() -> None:
    """The cookie of the browser held the name, and a server sends no header of such letters: it answered 500."""
    user = person()
    User.objects.filter(pk=user.pk).update(username=f"\u0142ukasz-\u5f20-{user.pk}")
    user.refresh_from_db()
    client = sign_in(user)
    device = client.cookies[attempts.DEVICE]
    device.output(header="").encode("ascii")  # as Django's server does
    del client.cookies["sessionid"]
    client.post("/accounts/login/", {"login": user.username, "password": PASSWORD})
    before, after = (each.split(":")[:2] for each in (device.value, client.cookies[attempts.DEVICE].value))
    assert before == after


def test_of_two_who_send_the_same_code_one_gets_in_and_its_session_is_ended_once() -> None:
    user = person()
    secret = add_app(confirmed(user))
    clients, code = [first_step(user) for _ in range(3)], code_of(secret, 1)
    race([lambda client=client: second_step(client, code) for client in clients])  # type: ignore[misc]
    [inside] = [client for client in clients if is_in(client)]
    number, by = number_of(inside), actors.of_user(user)
    assert race([lambda: sign_ins.end(user, number, by=by)] * 3).count(True) == 1
    assert told("user.session_ended", user) == [{"count": 1}]
    assert not is_in(inside)
