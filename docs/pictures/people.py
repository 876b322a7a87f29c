"""The part of the story with several people: who claims, who decides many at once, who proposes and who edits.

Mira has an authenticator app and a passkey. She keeps one gate claimed, has another taken over, and edits the amount of
a payment while ann does. Vera, a second administrator, proposes a milder policy. Eve forgot her password.
"""

from __future__ import annotations

import base64
import hmac
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.config.local.started_stack import Stack, environment
from tests.harness.waiting import until as wait_until

from .acting import DEMO, confirm_reader, make_decision, open_gate, sign_in_browser

DEVICE = {
    "protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True,
    "isUserVerified": True, "automaticPresenceSimulation": True,
}  # fmt: skip
# A provider of single sign-on that is away.
PROVIDER: dict[str, Any] = {
    "HOLDPOINT_OIDC": "corp",
    "HOLDPOINT_OIDC_CORP_LABEL": "Example Corp",
    "HOLDPOINT_OIDC_CORP_ISSUER": "http://127.0.0.1:9",
    "HOLDPOINT_OIDC_CORP_CLIENT_ID": "holdpoint",
    "HOLDPOINT_OIDC_CORP_CLIENT_SECRET": "none",
}
MAIL = """From: {name} <{address}>
To: service@shop.example
Subject: {what} broken on arrival (order no. {order})
Date: Fri, 20 Nov 2026 19:02:51 +0100
Message-ID: <{order}@holdpoint.example>
Content-Type: text/plain; charset=utf-8

Hello,

the {what} from order #{order} arrived broken. I would like the money back.

{name}
"""
MAILS = {
    "aoife.eml": MAIL.format(
        name="Aoife Brennan", address="aoife.brennan@inisfree.example", what="wax seal set", order=20430
    ),
    "tomas.eml": MAIL.format(
        name="Tomas Beltran", address="tomas.beltran@cobaltcycles.example", what="cork bar tape", order=20377
    ),
}
ERRORS = ("500", "503", "503_disk", "503_redis")
RENDER = r"from django.template.loader import render_to_string as r; print(*map(r, {}), sep='\0')"


@dataclass(frozen=True)
class People:
    """Addresses: of gates and a bulk decision, of the form for a new password; mira's session; pages of errors."""

    claimed: str
    taken_over: str
    merged: str
    bulk: str
    new_password: str
    mira: Any  # as BrowserContext.storage_state returns it
    errors: dict[str, str]


def make(browser: Browser, stack: Stack, merged: str) -> People:
    """Play this part; `merged`: a gate that needs an approval of ann's team and one of mira's."""
    errors = dict(
        zip(
            ERRORS,
            _manage(stack, "shell", "-v0", "-c", RENDER.format([f"{name}.html" for name in ERRORS])).split("\0"),
            strict=True,
        )
    )
    _manage(stack, "createsuperuser", "--noinput", "--username=vera", "--email=vera@holdpoint.example")
    ann, mira, vera = (
        sign_in_browser(browser, stack.base, 1440, "light", who=who).new_page() for who in ("ann", "mira", "vera")
    )
    _milder(vera)
    bulk = _bulk(ann, stack)
    taken_over = _claimed(mira, "Silas Quayle")
    ann.goto(taken_over)
    ann.get_by_text("Take over…").click()
    ann.get_by_role("button", name="Take over from Mira Sandoval").click()
    expect(ann.locator("#gate-claim")).to_contain_text("You have this")
    _merging(ann, mira, merged)
    new_password = _forgotten(browser, stack)
    _factors(mira)
    claimed = _claimed(mira, "Bettina Okoro")  # her page stays open, so that she keeps it
    for page in (ann, vera):
        page.context.close()
    return People(claimed, taken_over, merged, bulk, new_password, mira.context.storage_state(), errors)


def _manage(stack: Stack, *words: str) -> str:
    env = environment(stack.home, stack.port, DJANGO_SUPERUSER_PASSWORD=DEMO)
    return subprocess.run(
        [sys.executable, "manage.py", *words], env=env, check=True, capture_output=True, text=True
    ).stdout


def _milder(vera: Page) -> None:
    """Propose that a policy asks no confirmation any more."""
    vera.goto("/admin/approvals/policy/")
    with vera.expect_navigation():
        vera.locator("#result_list").get_by_role("link", name="large-wire", exact=True).click()
    vera.locator("[name=step_up]").uncheck()
    with vera.expect_navigation():
        vera.locator("[name=_save]").click()


def _bulk(ann: Page, stack: Stack) -> str:
    """Approve two gates together, one of which was decided meanwhile; return the address of what became of them."""
    folder = Path(stack.home, "small")
    folder.mkdir()
    for name, mail in MAILS.items():
        (folder / name).write_text(mail)
    _manage(stack, "run_agent", "refunds", "--wait", "--team", "Support", "--input", str(folder))
    choose_gates(ann)
    other = ann.context.new_page()
    other.goto(ann.locator("main a[href^='/gates/']").first.get_attribute("href") or "")
    make_decision(other, "approve")
    other.close()
    ann.locator("textarea").first.fill("Small refunds, each for one broken article.")
    ann.get_by_role("checkbox").check()
    ann.get_by_role("button", name=re.compile("Approve 2 gates")).click()
    ann.wait_for_url(re.compile(r"/inbox/bulk/\d+/"))
    return ann.url


def choose_gates(page: Page) -> None:
    """Select the newest two gates of low risk, and open what approving them would do."""
    page.goto("/?agent=refunds&risk=low")
    for box in page.locator("[name=gate]").all()[-2:]:
        box.check()
    page.locator("[data-bulk=a]").click()
    page.wait_for_url("**/inbox/bulk/")


def _claimed(page: Page, name: str) -> str:
    open_gate(page, name)
    page.get_by_role("button", name="I am on it").click()
    expect(page.locator("#gate-claim")).to_contain_text("You have this")
    return page.url


def _merging(ann: Page, mira: Page, gate: str) -> None:
    """Let ann begin an edit, and mira approve with another."""
    ann.goto(gate)
    ann.locator("input[name$='amount']").fill("1100.00")
    ann.locator("input[name$='/to']").fill("ACME Limited")
    expect(ann.locator("[data-draft-note]")).to_contain_text("Draft saved")
    mira.goto(gate)
    mira.locator("input[name$='amount']").fill("1050.00")
    make_decision(mira, "edit")


def _forgotten(browser: Browser, stack: Stack) -> str:
    """Ask for a new password in eve's name; return the address in the mail."""
    page = browser.new_page(base_url=stack.base)
    page.goto("/accounts/password/reset/")
    page.locator("[name=email]").fill("eve@holdpoint.example")
    page.locator("button.commit").click()
    page.wait_for_url("**/done/")
    page.close()
    link = re.compile(r"(/accounts/password/reset/key/\S+)")
    links: list[str] = []

    def came() -> bool:
        links[:] = [hit for mail in Path(stack.home, "mail").iterdir() for hit in link.findall(mail.read_text())]
        return bool(links)

    wait_until(came, what="the mail with the link came")
    return links[0]


def _factors(mira: Page) -> None:
    """Add an authenticator app and a passkey."""
    mira.goto("/account/security/app/")
    confirm_reader(mira)
    secret = mira.locator("code").first.inner_text()
    mira.locator("[name=code]").fill(code_of(secret))
    mira.get_by_role("button", name="Add the app").click()
    expect(mira.get_by_text("only time they are shown")).to_be_visible()
    device = mira.context.new_cdp_session(mira)
    device.send("WebAuthn.enable")
    device.send("WebAuthn.addVirtualAuthenticator", {"options": DEVICE})
    mira.goto("/account/security/passkeys/")
    confirm_reader(mira)
    mira.get_by_label("A name to recognize it by").fill("Work laptop")
    mira.get_by_role("button", name="Add a passkey").click()
    mira.wait_for_url(lambda address: not address.endswith("/passkeys/"))


def code_of(secret: str) -> str:
    """Return the code that an app shows now (RFC 6238)."""
    moment = (int(time.time()) // 30).to_bytes(8, "big")
    digest = hmac.digest(base64.b32decode(secret), moment, "sha1")
    part = int.from_bytes(digest[digest[-1] & 15 :][:4], "big") & 0x7FFFFFFF
    return f"{part % 1_000_000:06}"


def signed_in(browser: Browser, stack: Stack, people: People, width: int, scheme: str) -> BrowserContext:
    """Open a browser profile with mira's session, since a code of her app counts once."""
    looks: Any = {"color_scheme": scheme, "storage_state": people.mira}
    return browser.new_context(base_url=stack.base, viewport={"width": width, "height": 900}, **looks)
