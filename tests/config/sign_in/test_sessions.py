"""Where somebody is signed in: listed, ended one by one or all at once, by two at once, and gone from an open page."""

from __future__ import annotations

from typing import Any

from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client
from playwright.sync_api import expect

from approvals.accounts import factors, sign_ins, user_agents
from approvals.models import SignedIn
from approvals.sessions import digest_of_key
from checkpoints import actors
from config.sign_in import attempts
from config.sign_in.factors import advance_counter
from tests.config.sign_in.test_factors import (
    PASSWORD,
    add_app,
    code_of,
    first_step,
    fresh_limits,
    is_in,
    person,
    second_step,
    told,
)
from tests.harness.browser_checks import check_each_look, is_live, watched
from tests.harness.racing_threads import race
from tests.harness.signed_in_clients import confirmed, signed_in

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
SAFARI = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Version/18.0 Mobile Safari/604.1"


def sign_in(user: User, agent: str = FIREFOX, address: str = "203.0.113.9") -> Client:
    client = Client(headers={"User-Agent": agent}, REMOTE_ADDR=address)
    sent = client.post("/accounts/login/", {"login": user.username, "password": PASSWORD})
    assert sent.status_code == 302
    return client


def number_of(client: Client) -> int:
    found: int = SignedIn.objects.get(session_key=digest_of_key(client.cookies["sessionid"].value)).pk
    return found


def test_each_is_listed_with_its_browser_and_its_address() -> None:
    user = person()
    desk, phone = sign_in(user), sign_in(user, SAFARI, "198.51.100.4")
    page = desk.get("/account/sessions/").content.decode()
    for words in ("Firefox on Linux", "this session", "203.0.113.9", "Safari on iPhone", "198.51.100.4", "by password"):
        assert words in page
    assert told("user.signed_in", user)[0] == {"address": "203.0.113.9", "method": "password"}
    phone.post("/accounts/logout/")
    assert "Safari on iPhone" not in desk.get("/account/sessions/").content.decode()
    assert told("user.session_ended", user) == [{"count": 1}]


def test_one_is_ended_and_nobody_elses() -> None:
    user = person()
    desk, phone = sign_in(user), sign_in(user, SAFARI)
    other = sign_in(person())
    assert other.post(f"/account/sessions/{number_of(phone)}/removals/").status_code == 404
    assert is_in(phone)
    desk.post(f"/account/sessions/{number_of(phone)}/removals/")
    assert is_in(desk)
    assert not is_in(phone)
    assert desk.post("/account/sessions/1/removals/").status_code == 404


def test_all_others_are_ended_those_from_before_the_list_too() -> None:
    user = person()
    desk, phone, older = sign_in(user), sign_in(user, SAFARI), signed_in(user)
    stranger = signed_in(person())
    assert not SignedIn.objects.filter(session_key=digest_of_key(older.cookies["sessionid"].value)).exists()
    desk.post("/account/sessions/others/removals/")
    assert [is_in(client) for client in (desk, phone, older, stranger)] == [True, False, False, True]
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


def test_use_is_noted_now_and_then() -> None:
    user = person()
    desk = sign_in(user)
    SignedIn.objects.filter(user=user).update(seen_at="2026-01-01T00:00:00Z")
    desk.get("/")
    assert SignedIn.objects.get(user=user).seen_at.year == 2026
    assert SignedIn.objects.get(user=user).seen_at.month == 1, "noted at the sign-in"
    sign_ins._seen.clear()
    desk.get("/")
    assert SignedIn.objects.get(user=user).seen_at.month > 1


def test_no_key_of_a_session_is_in_the_list() -> None:
    user = person()
    key = sign_in(user).cookies["sessionid"].value
    row = SignedIn.objects.get(user=user)
    assert key not in str(vars(row))
    assert Session.objects.filter(session_key=row.session_key).exists()


def test_rows_without_a_session_are_cleared_at_night() -> None:
    user = person()
    sign_in(user)
    Session.objects.filter(session_key=SignedIn.objects.get(user=user).session_key).delete()
    assert SignedIn.objects.outlived().filter(user=user).delete()[0] == 1


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
    assert check_each_look(desk, "", said[0]) == []
    phone.evaluate(
        "document.querySelector('hp-live').socket.addEventListener('close', (e) => (window.closed_by = e.code))"
    )
    desk.get_by_role("button", name="Sign out all others").click()
    expect(desk.get_by_role("button", name="Sign out all others")).to_have_count(0)
    phone.wait_for_function("window.closed_by === 4401", timeout=10_000)  # a heartbeat comes every 15 s
    phone.goto("/")
    expect(phone.get_by_role("heading", name="Sign in")).to_be_visible()


def test_browsers_are_named_by_what_they_say() -> None:
    assert user_agents.named(FIREFOX) == "Firefox on Linux"
    assert user_agents.named(SAFARI) == "Safari on iPhone"
    assert user_agents.named("") == "Unknown browser"


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


__all__ = ["fresh_limits"]


def test_of_two_who_send_the_same_code_one_gets_in() -> None:
    user = person()
    secret = add_app(confirmed(user))
    clients, code = [first_step(user) for _ in range(3)], code_of(secret, 1)
    race([lambda client=client: second_step(client, code) for client in clients])  # type: ignore[misc]
    assert [is_in(client) for client in clients].count(True) == 1


def test_of_two_who_send_the_same_recovery_code_one_gets_in() -> None:
    user = person()
    add_app(confirmed(user))
    [code, *_] = Authenticator.objects.get(user=user, type="recovery_codes").wrap().get_unused_codes()
    clients = [first_step(user) for _ in range(3)]
    race([lambda client=client: second_step(client, code) for client in clients])  # type: ignore[misc]
    assert [is_in(client) for client in clients].count(True) == 1


def test_a_counter_goes_up_once() -> None:
    user = person()
    add_app(confirmed(user))
    row = Authenticator.objects.get(user=user, type="totp")
    value = int(row.data["counter"]) + 5
    assert race([lambda: advance_counter(row, "counter", value)] * 4).count(True) == 1


def test_a_session_that_is_ended_twice_at_once_is_ended_once() -> None:
    user = person()
    client = sign_in(user)
    number = SignedIn.objects.get(user=user).pk
    by = actors.of_user(user)
    assert race([lambda: sign_ins.end(user, number, by=by)] * 3).count(True) == 1
    assert told("user.session_ended", user) == [{"count": 1}]
    assert not is_in(client)


def test_a_factor_that_is_removed_twice_at_once_is_told_of_once() -> None:
    user = person()
    add_app(confirmed(user))
    row = Authenticator.objects.get(user=user, type="totp")
    race([lambda: factors.remove(user, [row.pk], by=actors.SYSTEM)] * 3)
    assert sorted(each["factor"] for each in told("user.factor_removed", user)) == ["code", "recovery_code"]
