"""Somebody new on a phone: told by push, opens the gate, edits a field, approves by passkey, sees the receipt.

The web server, the sweeper and the worker are real, and nothing of the run is done by the test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from approvals.models import Gate
from checkpoints.actors import SYSTEM
from checkpoints.models import Event
from tests.config.sign_in.test_passkeys import PASSWORD, with_device
from tests.factories import make_policy, make_team, make_user
from tests.factories.events import data_of
from tests.harness.browser_checks import watched
from tests.harness.known_agents import knowing_only
from tests.harness.services import free_port, wait_for_http, web_command
from tests.harness.waiting import until

from .phone import Phone
from .push_service import FakeBrowser

Starter = Callable[..., Any]


@pytest.fixture(autouse=True)
def silent(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Know the agent that offers seven and pays, here and in the processes started from here."""
    with knowing_only("tests.agents.questions.questioned_agents", settings, monkeypatch):
        yield


@pytest.fixture
def site(settings: Any, start_service: Starter, celery_worker: Starter, sweeper: Starter, silent: None) -> str:
    """A web server at a name, since passkeys are bound to names, with a worker and a sweeper."""
    port = free_port()
    base = f"http://localhost:{port}"
    env = {
        "HOLDPOINT_ORIGINS": base, "HOLDPOINT_VAPID_KEY": settings.HOLDPOINT_VAPID_KEY,
        "HOLDPOINT_PUSH_SERVICES": "127.0.0.1", "HOLDPOINT_WEBHOOKS_PRIVATE": "127.0.0.0/8",
    }  # fmt: skip
    wait_for_http(start_service("web", web_command(port), env), f"{base}/healthz")
    celery_worker("-c", "1", env=env)
    sweeper(env=env)
    return base


def sign_in(page: Page, user: Any) -> None:
    page.goto("/accounts/login/?next=/account/security/passkeys/")
    page.get_by_label("Login").or_(page.get_by_label("Username")).fill(user.username)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).tap()


def add_passkey(page: Page) -> None:
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Confirm", exact=True).tap()
    page.get_by_label("A name to recognize it by").fill("Phone")
    page.get_by_role("button", name="Add a passkey").tap()
    expect(page.get_by_text("only time they are shown")).to_be_visible()


@pytest.mark.long
def test_told_by_push_opened_edited_and_approved_by_passkey_with_a_receipt(
    whole_browser: Browser, site: str, its: FakeBrowser, tmp_path: Path
) -> None:
    from agents.runs.start import start_run

    ledger, team = tmp_path / "ledger", make_team()
    user = make_user("Ann Okafor", team, password=PASSWORD)
    make_policy(team, name="payments", step_up=True, step_up_method="passkey")
    phone = Phone(whole_browser, site, None, its)
    page = phone.page
    said = watched(page)
    with_device(page)
    sign_in(page, user)
    add_passkey(page)
    phone.turn_on()

    run = start_run("silent", {"ledger": str(ledger)}, by=SYSTEM, team=team)
    until(lambda: len(its.got) == 1, what="the push arrives")
    gate = Gate.objects.get(run=run)
    [told] = its.read()
    phone.push_until(told, lambda: len(phone.shown()) == 1)
    went = phone.press(phone.shown()[0][0])
    assert went == f"opened {site}/gates/{gate.pk}/"

    page.goto(went.removeprefix("opened "))
    expect(page.locator("h1")).to_contain_text("Pay 7")
    page.locator(".decide-dock").get_by_role("link", name="Approve").tap()
    page.locator("#decide label[data-choice=edit]").tap()
    page.locator("[name='args.pay/amount']").fill("9")
    page.locator("[data-commit]:visible").tap()
    expect(page.get_by_role("heading", name="Confirm with your passkey")).to_be_visible()
    page.get_by_role("button", name="Use your passkey").tap()
    expect(page.locator("#step-up")).to_contain_text("You confirmed who you are")
    expect(page.locator("[name='args.pay/amount']")).to_have_value("9")
    assert not ledger.exists()
    page.locator("[data-commit]:visible").tap()
    expect(page.locator("#gate-receipt")).to_contain_text("Done")
    assert ledger.read_text() == "paid 9\n"
    decided = Event.objects.get(kind="gate.decided", subject=gate.subject)
    assert (gate.decisions.get().verdict, data_of(decided)["confirmed_by"]) == ("edit", "passkey")
    assert said == []
    phone.context.close()
