"""A secret in a real browser: nowhere on any page, revealed in its place by whoever may, and gone again."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from approvals.models import Gate
from checkpoints.models import Event
from tests.approvals.schema.redaction.vault_agent import SECRETS, TOKEN
from tests.approvals.schema.redaction.vault_runs import make_people, make_run, member
from tests.factories.driven_runs import open_gate
from tests.harness.browser_checks import is_live, watched

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
