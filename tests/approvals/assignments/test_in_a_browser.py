"""Claims, hand-overs and times away in a real browser: live for others, and without script too."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from approvals.assignments import claims
from approvals.models import Delegation
from tests.factories import ann, bob, make_card, make_gate, make_team, mira
from tests.harness.browser_checks import check_each_look, is_live, watched

NewPage = Callable[..., Page]


def test_one_claims_another_sees_it_at_once_and_takes_over_before_deciding(new_page: NewPage) -> None:
    team = make_team()
    gate = make_gate(team=team, card=make_card(title="Refund to Marit"))
    one, other = mira(team), bob(team)
    theirs = new_page(other)
    inbox = theirs.context.new_page()
    inbox.goto("/")
    is_live(inbox)
    theirs.goto(f"/gates/{gate.pk}/")
    is_live(theirs)
    page = new_page(one)
    page.goto(f"/gates/{gate.pk}/")
    is_live(page)
    page.get_by_role("button", name="I am on it").click()
    expect(page.locator("#gate-claim")).to_contain_text("You have this")
    expect(theirs.locator("#gate-claim")).to_contain_text("Mira Sandoval has this")
    expect(inbox.locator(f"#gate-{gate.pk}")).to_contain_text("Mira Sandoval has this")
    theirs.get_by_text("Take over…").click()
    theirs.get_by_role("button", name="Take over from Mira Sandoval").click()
    expect(theirs.locator("#gate-claim")).to_contain_text("You have this")
    expect(page.locator("#gate-claim")).to_contain_text("Bob Lindqvist has this, looking now")


@pytest.mark.long
def test_the_pages_are_usable_in_both_themes_and_at_each_width(new_page: NewPage) -> None:
    team = make_team()
    gate, one, other = make_gate(team=team), ann(team), bob(team)
    claims.claim(gate, by=other)
    now = timezone.now()
    Delegation.objects.create(
        person=mira(team), delegate=one, starts_at=now - timedelta(days=1), ends_at=now + timedelta(days=3)
    )
    page = new_page(one)
    said = watched(page)
    for address in (f"/gates/{gate.pk}/hand-over/", "/account/away/"):
        assert check_each_look(page, address, said) == []
