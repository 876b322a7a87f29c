"""Passkeys in a real browser with a virtual authenticator, and what is sent in place of a passkey's answer."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.core.cache import cache
from django.test import Client
from playwright.sync_api import CDPSession, Page, expect

from approvals.models import Gate
from checkpoints.models import Event
from tests.config.sign_in.test_factors import fresh_limits
from tests.factories import make_gate, make_policy, make_team, make_user
from tests.factories.events import data_of
from tests.harness.browser_checks import check, watched
from tests.harness.services import Service, free_port, wait_for_http, web_command
from tests.harness.signed_in_clients import confirmed

__all__ = ["fresh_limits"]
PASSWORD = "open sesame again"
DEVICE = {
    "protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True,
    "isUserVerified": True, "automaticPresenceSimulation": True,
}  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A web server at a name: passkeys are bound to names, and 127.0.0.1 is none."""
    port = free_port()
    base = f"http://localhost:{port}"
    service = Service("web", web_command(port), tmp_path_factory.mktemp("site"), {"HOLDPOINT_ORIGINS": base})
    try:
        wait_for_http(service, f"{base}/healthz")
        yield base
    finally:
        service.kill()


def with_device(page: Page) -> tuple[CDPSession, str]:
    cdp = page.context.new_cdp_session(page)
    cdp.send("WebAuthn.enable")
    return cdp, cdp.send("WebAuthn.addVirtualAuthenticator", {"options": DEVICE})["authenticatorId"]


def sign_in(page: Page, site: str, user: Any, to: str = "/") -> None:
    page.goto(f"{site}/accounts/login/?next={to}")
    page.get_by_label("Login").or_(page.get_by_label("Username")).fill(user.username)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()


def add_passkey(page: Page, site: str, user: Any) -> None:
    sign_in(page, site, user, to="/account/security/passkeys/")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Confirm", exact=True).click()
    page.get_by_label("A name to recognize it by").fill("Work laptop")
    page.get_by_role("button", name="Add a passkey").click()
    expect(page.get_by_text("only time they are shown")).to_be_visible()


def test_a_passkey_is_added_signs_in_and_decides_and_a_copied_one_is_refused(browser: Any, site: str) -> None:
    """A policy that asks for one takes no password. The counter of a copy stood still: allauth does not look at it."""
    gate = make_gate(policy=make_policy(make_team(), step_up=True, step_up_method="passkey"))
    user = make_user("Ann Okafor", gate.team, password=PASSWORD)
    page = browser.new_context().new_page()
    said = watched(page)
    cdp, device = with_device(page)
    add_passkey(page, site, user)
    page.goto(f"{site}/account/security/")
    expect(page.locator("bdi", has_text="Work laptop")).to_be_visible()
    assert check(page, "", said) == []

    page.context.clear_cookies()
    page.goto(f"{site}/accounts/login/?next=/gates/{gate.pk}/")
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.locator("#step-up")).to_contain_text("You will use your passkey")
    page.locator(".segments label", has_text="Approve").click()
    page.locator("[data-for='approve'][data-commit]").click()
    expect(page.get_by_role("heading", name="Confirm with your passkey")).to_be_visible()
    assert page.get_by_label("Password", exact=True).count() == 0
    page.get_by_role("button", name="Use your passkey").click()
    expect(page.locator("#step-up")).to_contain_text("You confirmed who you are")
    assert Gate.objects.get(pk=gate.pk).status == "open"
    with page.expect_navigation():  # a live update says it before
        page.locator("[data-for='approve'][data-commit]").click()
    expect(page.locator("#gate-head")).not_to_have_attribute("data-status", "open")
    decided = Event.objects.get(kind="gate.decided", subject=gate.subject)
    assert data_of(decided)["confirmed_by"] == "passkey"
    signed = Event.objects.filter(kind="user.signed_in", subject=f"user:{user.pk}").order_by("pk")
    assert [data_of(each)["method"] for each in signed] == ["password", "passkey"]

    # One that does not ask who it is, and a copy.
    cdp.send("WebAuthn.setUserVerified", {"authenticatorId": device, "isUserVerified": False})
    page.goto(f"{site}/accounts/reauthenticate/passkey/?next=/")
    page.get_by_role("button", name="Use your passkey").click()
    expect(page.locator("hp-passkey [role=alert]")).to_be_visible()
    expect(page.get_by_role("heading", name="Confirm with your passkey")).to_be_visible()
    cdp.send("WebAuthn.setUserVerified", {"authenticatorId": device, "isUserVerified": True})
    [key] = cdp.send("WebAuthn.getCredentials", {"authenticatorId": device})["credentials"]
    for answered in ("Mine", None):
        page.context.clear_cookies()
        page.goto(f"{site}/accounts/login/")
        page.get_by_role("button", name="Sign in with a passkey").click()
        if answered:
            expect(page.get_by_role("heading", name="Mine")).to_be_visible()
            cdp.send("WebAuthn.clearCredentials", {"authenticatorId": device})
            cdp.send("WebAuthn.addCredential", {"authenticatorId": device, "credential": key})  # as it was before
    expect(page.get_by_text("This passkey was refused")).to_be_visible()
    page.goto(f"{site}/")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


@pytest.mark.long
def test_a_passkey_of_another_account_is_no_second_factor(browser: Any, site: str) -> None:
    """Bob's password with Ann's key."""
    ann, bob = make_user("Ann Okafor", password=PASSWORD), make_user("Bob Lindqvist", password=PASSWORD)
    page = browser.new_context().new_page()
    with_device(page)
    add_passkey(page, site, ann)
    other = browser.new_context().new_page()
    with_device(other)
    add_passkey(other, site, bob)
    rows = {row.user_id: row for row in Authenticator.objects.filter(type="webauthn", user__in=[ann, bob])}
    assert len({row.data["credential"]["id"] for row in rows.values()}) == 2
    page.context.clear_cookies()
    sign_in(page, site, bob)
    expect(page.get_by_role("heading", name="One more step")).to_be_visible()
    page.get_by_role("button", name="Use your passkey").click()
    expect(page.locator("hp-passkey [role=alert]")).to_be_visible()


HUGE = 2**62  # bytes that no machine has


def coded(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")


def answer(*, raw_id: Any = "AAAA", **parts: Any) -> str:
    """A passkey's answer of the right shape, but for what is given."""
    said = json.dumps({"type": "webauthn.get", "challenge": "AAAA", "origin": "http://localhost:8000"})
    response = {
        "clientDataJSON": coded(said.encode()), "authenticatorData": coded(bytes(37)), "signature": "AAAA",
        "userHandle": "MQ", **parts,
    }  # fmt: skip
    return json.dumps({"id": raw_id, "rawId": raw_id, "type": "public-key", "response": response})


EXTENDED = coded(bytes(32) + b"\x81" + bytes(4))  # says that extensions follow, and ends
JUNK = {
    "deep JSON": "[" * 100_000, "a number of many digits": "1" * 5_000, "no object": "[1]",
    "an answer of another type": '{"response": 1}', "bytes by their number": answer(raw_id=HUGE),
    "an owner by their number": answer(userHandle=HUGE),
    "extensions that are missing": answer(authenticatorData=EXTENDED),
    "deep extensions": answer(authenticatorData=coded(bytes(32) + b"\x81" + bytes(4) + b"\x81" * 50_000)),
    "deep client data": answer(clientDataJSON=coded(b"[" * 100_000)), "client data of another type": answer(
        clientDataJSON=coded(b'{"type": 1, "challenge": 5, "origin": []}')),
    "no base64": answer(signature="\ud800"), "an owner of many digits": answer(userHandle=coded(b"z" * 13)),
}  # fmt: skip


def test_junk_in_place_of_a_passkey_signs_nobody_in_adds_none_and_breaks_nothing() -> None:
    """Anybody had the server make as many bytes as a number said, and answer 500."""
    client = confirmed(make_user("Ann Okafor", password=PASSWORD))
    for what, junk in JUNK.items():
        cache.clear()  # of the tries that are counted
        stranger = Client()
        stranger.get("/accounts/passkey/", headers={"Accept": "application/json"})
        sent = stranger.post("/accounts/passkey/", {"credential": junk})
        assert sent["Location"] == "/accounts/login/?passkey=refused", what
        for page in ("/account/security/passkeys/", "/accounts/reauthenticate/passkey/"):
            assert client.post(page, {"credential": junk, "name": "A"}).status_code == 200, what
