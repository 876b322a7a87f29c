"""The password is asked for when a decision is sent; whoever gave it comes back to all that they had entered."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from approvals.models import Gate
from tests.factories import make_gate, make_policy, make_team, make_user
from tests.harness.browser_checks import check_each_look, is_live, watched
from tests.harness.examples import first_alone

NewPage = Callable[..., Page]
PASSWORD = "open sesame again"
COMMIT = "[data-for='approve'][data-commit]"


def strict_gate() -> Gate:
    return make_gate(policy=make_policy(make_team(), step_up=True))


@pytest.mark.parametrize("scripts", first_alone([True, False]))
@pytest.mark.examples
def test_sent_asked_confirmed_and_sent(new_page: NewPage, scripts: bool) -> None:
    gate = strict_gate()
    page = new_page(make_user("Ann Okafor", gate.team, password=PASSWORD), java_script_enabled=scripts)
    said = watched(page)
    page.goto(f"/gates/{gate.pk}/")
    expect(page.locator("#step-up")).to_contain_text("You will confirm who you are")
    page.locator(".segments label", has_text="Approve").click()
    page.locator(".comment summary").click()
    page.fill("#comment", "As agreed by telephone")
    page.locator(COMMIT).click()
    expect(page.get_by_role("heading", name="Confirm who you are")).to_be_visible()
    if scripts:
        assert check_each_look(page, "", said) == []
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Confirm", exact=True).click()
    expect(page.locator("#step-up")).to_contain_text("You confirmed who you are")
    expect(page.locator("#comment")).to_have_value("As agreed by telephone")
    assert Gate.objects.get(pk=gate.pk).status == "open"
    if scripts:
        assert check_each_look(page, "", said) == []
    page.locator(COMMIT).click()
    expect(page.locator("#gate-head")).not_to_have_attribute("data-status", "open")
    [decision] = gate.decisions.all()
    assert (decision.verdict, decision.words) == ("approve", "As agreed by telephone")


def test_another_tab_goes_on_hearing_under_the_sessions_new_key(new_page: NewPage) -> None:
    """It said that somebody had signed out, who had only given the password again."""
    gate = strict_gate()
    page = new_page(make_user("Ann Okafor", gate.team, password=PASSWORD))
    other = page.context.new_page()
    other.goto("/")
    is_live(other)
    page.goto("/accounts/reauthenticate/?next=/")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Confirm", exact=True).click()
    expect(page).to_have_url(re.compile(r"/$"))
    asks_again = "document.querySelector('hp-live').socket.send(JSON.stringify({ watch: ['gate:1'], looking: 0 }))"
    with other.expect_websocket():  # the server finds that the session's old key is nobody's, and ends the socket
        other.evaluate(asks_again)
    second = make_gate(policy=gate.policy)
    expect(other.locator(f"#gate-{second.pk}")).to_be_visible()
