"""After a decision the next gate of one's queue follows by itself; a list whose end is reached says so."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import RequestFactory
from playwright.sync_api import Page, expect

from approvals.models import Gate
from approvals.views.lists.asked import COOKIE, InboxFilters, followed, remember
from tests.factories import ann, make_card, make_gate, make_policy, make_team
from tests.harness.browser_checks import is_live
from tests.harness.signed_in_clients import form_of, post

NewPage = Callable[..., Page]


def fresh(gate: Gate) -> Gate:
    return Gate.objects.get(pk=gate.pk)


def test_gates_are_decided_one_after_the_other_by_keys_alone(new_page: NewPage) -> None:
    """After each decision one went back to the list and looked for the next."""
    policy = make_policy(make_team())
    gates = [make_gate(policy=policy, card=make_card(title=f"Refund {number}")) for number in (1, 2, 3)]
    page = new_page(ann(policy.team))
    page.goto(f"/gates/{gates[0].pk}/")
    for gate, following in pairwise(gates):
        is_live(page)
        page.keyboard.press("a")
        page.keyboard.press("Control+Enter")
        page.wait_for_url(f"**/gates/{following.pk}/?decided={gate.pk}")
        expect(page.locator("#followed")).to_contain_text("Your decision was recorded. Approved by Ann Okafor")
        expect(page.locator("h1")).to_be_focused()
        assert fresh(gate).status == "decided"
    is_live(page)
    page.keyboard.press("a")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#gate-line")).to_contain_text("Approved by Ann Okafor")
    assert [fresh(gate).status for gate in gates] == ["decided"] * 3


@pytest.mark.long
def test_whoever_takes_the_tick_away_stays_and_it_stays_away(new_page: NewPage) -> None:
    policy = make_policy(make_team())
    first, second, _ = [make_gate(policy=policy) for _ in range(3)]
    page = new_page(ann(policy.team))
    page.goto(f"/gates/{first.pk}/")
    page.get_by_label("Then open my next gate").uncheck()
    page.locator("label[data-choice=approve]").click()
    with page.expect_navigation():
        page.locator("[data-commit]:visible").click()
    expect(page.locator("#gate-line")).to_contain_text("Approved by Ann Okafor")
    page.goto(f"/gates/{second.pk}/")
    expect(page.get_by_label("Then open my next gate")).not_to_be_checked()


def test_the_end_of_a_list_is_said(new_page: NewPage) -> None:
    policy = make_policy(make_team())
    for _ in range(2):
        make_gate(policy=policy)
    page = new_page(ann(policy.team))
    page.goto("/")
    is_live(page)
    for said in ("", "", "End of the list"):
        page.keyboard.press("j")
        expect(page.locator(".list-end")).to_have_text(said) if said else expect(
            page.locator(".list-end:not(:empty)")
        ).to_have_count(0)
    page.keyboard.press("k")
    expect(page.locator(".list-end:not(:empty)")).to_have_count(0)
    page.keyboard.press("k")
    expect(page.get_by_role("status").filter(has_text="Start of the list")).to_be_visible()


def test_a_page_that_is_refused_keeps_the_tick_taken_away() -> None:
    """It came back ticked, and the next try led away."""
    policy = make_policy(make_team())
    gate, _ = [make_gate(policy=policy) for _ in range(2)]
    answer = post(ann(policy.team), gate, form_of(gate, "reject", then="stop", follows="yes"))
    assert answer.status_code == 422
    assert 'name="follow" value="yes">' in answer.content.decode()
    answer = post(ann(policy.team), gate, form_of(gate, "reject", then="stop", follows="yes", follow="yes"))
    assert 'name="follow" value="yes" checked>' in answer.content.decode()


def test_a_long_search_is_followed_with_its_order() -> None:
    """The cookie was read up to its thousandth character, which cut off what came after the words."""
    asked = InboxFilters.of({"q": "é" * 200, "sort": "amount"})
    request = RequestFactory().get("/")
    request.user = User(pk=7)
    remember(request, response := HttpResponse(), asked)
    request.COOKIES[COOKIE] = response.cookies[COOKIE].value
    assert followed(request) == asked.wanted
