"""Claims, hand-overs and times away in a real browser: live for others, and without script too."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from approvals.assignments import claims
from approvals.models import Delegation, Gate, GateClaim
from tests.factories import ann, bob, make_card, make_gate, make_team, mira
from tests.harness.browser_checks import check_each_look, is_live, watched

NewPage = Callable[..., Page]


def test_one_claims_another_sees_it_at_once_and_takes_over_before_deciding(new_page: NewPage) -> None:
    team = make_team()
    gate = make_gate(team=team, card=make_card(title="Refund to Marit"))
    one, other = mira(team), bob(team)
    inbox, theirs = new_page(other), new_page(other)
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


def test_a_decision_over_a_claim_is_refused_with_what_was_chosen_kept(new_page: NewPage) -> None:
    team = make_team()
    gate, one, other = make_gate(team=team), mira(team), ann(team)
    page = new_page(other)
    page.goto(f"/gates/{gate.pk}/")
    is_live(page)
    claims.claim(gate, by=one)
    expect(page.locator("#gate-claim")).to_contain_text("Mira Sandoval has this")
    page.locator(".segments").get_by_text("Approve").first.click()
    page.locator(".commit:visible").first.click()
    expect(page.locator("#refusal")).to_contain_text("Take it over first")
    assert Gate.objects.get(pk=gate.pk).status == "open"
    page.get_by_text("Take over…").click()
    page.get_by_role("button", name="Take over from Mira Sandoval").click()
    expect(page.locator("#gate-claim")).to_contain_text("You have this")
    assert GateClaim.objects.get(gate=gate).user == other


@pytest.mark.long
def test_all_of_it_works_without_script(new_page: NewPage) -> None:
    team = make_team()
    gate, one, other = make_gate(team=team), ann(team), bob(team)
    page = new_page(one, java_script_enabled=False)
    page.goto(f"/gates/{gate.pk}/")
    page.get_by_role("button", name="I am on it").click()
    expect(page.locator("#gate-claim")).to_contain_text("You have this")
    page.get_by_role("link", name="Hand over…").click()
    page.get_by_label("Who should act").select_option(label="Bob Lindqvist")
    page.get_by_label("Reason").fill("Bob knows the customer.")
    page.get_by_role("button", name="Hand over").click()
    expect(page.locator("#gate-desk")).to_contain_text("Bob Lindqvist is asked to act, by Ann Okafor")
    assert not GateClaim.objects.filter(gate=gate).exists()
    page.goto("/account/away/")
    page.get_by_label("Who decides for you").select_option(label="Bob Lindqvist")
    page.get_by_role("button", name="Plan", exact=True).click()
    expect(page.locator("main")).to_contain_text("Bob Lindqvist decides for you")
    made = Delegation.objects.get(person=one)
    assert (made.delegate, made.ended_at) == (other, None)
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("main")).to_contain_text("No time away is planned")


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
    for address in (f"/gates/{gate.pk}/", f"/gates/{gate.pk}/hand-over/", "/account/away/"):
        assert check_each_look(page, address, said) == []
