"""A secret in a real browser: nowhere on any page, revealed in its place by whoever may, and gone again."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from approvals.models import Gate
from checkpoints.models import Event
from tests.factories.driven_runs import open_gate
from tests.harness.browser_checks import check_each_look, is_live, watched

from .vault_agent import SECRETS, TOKEN
from .vault_runs import addresses, make_people, make_run, member

NewPage = Callable[..., Page]


@pytest.fixture
def gate(ledger: str) -> Gate:
    return open_gate(make_run(make_people(whole=True), ledger, note="alone"))


def holding(page: Page) -> list[str]:
    """The secrets that are anywhere in the page, its inputs and its history's state among it."""
    everything = page.evaluate(
        """() => document.documentElement.outerHTML + JSON.stringify(history.state) +
        [...document.querySelectorAll("input, textarea")].map((each) => each.value).join() +
        JSON.stringify({...localStorage, ...sessionStorage})"""
    )
    return [secret for secret in SECRETS if secret in everything]


def test_it_is_in_no_page_and_nothing_that_a_browser_keeps(new_page: NewPage, web: str, gate: Gate) -> None:
    page = new_page(member(gate.team, reveals=True))
    shown = {"/", f"/gates/{gate.pk}/", f"/runs/{gate.run_id}/", f"/runs/{gate.run_id}/?at=2&view=state", "/audit/"}
    shown |= {f"/runs/{gate.run_id}/checkpoints/2/{name}/" for name in ("edit", "fork")}
    assert shown <= set(addresses(gate.run, [gate.pk]))
    for address in sorted(shown):
        page.goto(address)
        assert holding(page) == [], address


def test_it_is_shown_in_its_place_and_hidden_again(new_page: NewPage, web: str, gate: Gate) -> None:
    page = new_page(member(gate.team, reveals=True))
    said = watched(page)
    page.goto(f"/gates/{gate.pk}/")
    is_live(page)
    first = page.locator("hp-secret", has_text="token").first
    expect(first.get_by_role("button")).to_have_accessible_name(re.compile("^Reveal .*token"))
    first.get_by_role("button").click()
    expect(first.locator("output")).to_have_text(TOKEN)
    expect(first.get_by_role("button")).to_have_accessible_name(re.compile("^Hide .*token"))
    assert Event.objects.filter(kind="secret.revealed", run_id=gate.run_id).count() == 1
    first.get_by_role("button").click()
    expect(first.locator("output")).not_to_contain_text(TOKEN)
    assert holding(page) == []
    first.get_by_role("button").click()
    expect(first.locator("output")).to_have_text(TOKEN)
    page.goto("/runs/")
    page.go_back()
    is_live(page)
    assert holding(page) == []
    assert page.url.endswith(f"/gates/{gate.pk}/")
    assert said == []


@pytest.mark.long
def test_it_is_shown_without_script(new_page: NewPage, web: str, gate: Gate) -> None:
    page = new_page(member(gate.team, reveals=True), java_script_enabled=False)
    page.goto(f"/runs/{gate.run_id}/checkpoints/2/?view=state")
    page.locator("hp-secret", has_text="token").first.get_by_role("button").click()
    expect(page.locator(".verbatim")).to_have_text(TOKEN)
    page.get_by_role("link", name="checkpoint 2").first.click()
    expect(page.locator("#secrets")).to_be_visible()


@pytest.mark.examples
def test_the_pages_are_in_order(new_page: NewPage, web: str, gate: Gate) -> None:
    page = new_page(member(gate.team, reveals=True))
    said = watched(page)
    for address in (f"/gates/{gate.pk}/", f"/runs/{gate.run_id}/checkpoints/2/?view=state"):
        assert check_each_look(page, address, said) == []
