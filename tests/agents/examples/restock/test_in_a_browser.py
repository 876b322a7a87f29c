"""Three actions in one gate in a real browser: one approved, one edited in a nested list, one rejected with a reason.

Two people look at it at once, and one of them is faster.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.core import mail as outbox
from playwright.sync_api import Page, expect

from approvals.models import Gate
from tests.agents.examples.refunds.conftest import World
from tests.factories import ann, bob, make_team
from tests.factories.driven_runs import advance_to_rest, open_gate, state
from tests.harness.browser_checks import check_each_look, is_live, watched

from .restock_runs import made, make_restock

NewPage = Callable[..., Page]
PRICE = "[name='args.price/price']"
QUANTITY = "[name='args.order/lines/1/quantity']"
REASON = "[name='reason.message']"
ALL = re.compile(r"Approve with edit: place the order, change the price to €[\d.]+, tell the customers")
MIX = re.compile(r"Approve with edit: place the order, change the price to €[\d.]+; reject 1")


def choose(page: Page, action: str, verdict: str) -> None:
    page.locator(f"#action-{action} label[data-choice={verdict}]").click()


def test_one_is_approved_one_edited_deep_inside_and_one_rejected_while_another_is_slower(
    new_page: NewPage, world: World
) -> None:
    team = make_team()
    run = make_restock(team=team)
    gate = open_gate(run)
    first, slower = new_page(ann(team)), new_page(bob(team))
    said = [watched(first), watched(slower)]
    for page in (first, slower):
        page.goto(f"/gates/{gate.pk}/")
        is_live(page)

    choose(slower, "price", "reject")
    slower.fill("[name='reason.price']", "Not before Easter.")
    choose(slower, "order", "approve")

    button = first.locator("[data-commit]:visible")
    first.route("**/impacts/", lambda route: route.abort())
    first.fill(PRICE, "52.50")
    expect(button).not_to_contain_text("13.09", use_inner_text=True)  # never another amount than the field has
    first.unroute("**/impacts/")
    first.fill(PRICE, "13.09")
    first.fill(QUANTITY, "11")
    expect(first.locator("[name='verdict.order'][value=edit]")).to_be_checked()
    expect(first.locator("[name=verdict][value=each]")).to_be_checked()
    expect(first.locator("[data-commit]:visible")).to_contain_text(ALL)
    choose(first, "price", "approve")
    with first.expect_response("**/impacts/"):
        choose(first, "message", "reject")
    first.fill(REASON, "They were told by telephone.")
    expect(first.locator("[data-commit]:visible")).to_contain_text(MIX)
    skipped = first.locator("#edit-impact [data-effect=skip]")
    expect(skipped).to_contain_text("Skipped")
    expect(skipped).to_contain_text("Tell the customers; rejected")
    first.locator("[data-commit]:visible").click()
    expect(first.locator("#gate-news")).to_contain_text("Approved 1, edited 1, rejected 1 by Ann Okafor")
    expect(first.locator("#action-message .status").last).to_contain_text("Rejected")

    expect(slower.locator("#gate-news")).to_contain_text("Approved 1, edited 1, rejected 1 by Ann Okafor")
    expect(slower.locator("#gate-news")).to_contain_text("They were told by telephone.")
    expect(slower.locator("[name='reason.price']")).to_have_value("Not before Easter.")
    expect(slower.locator("[data-commit]:visible")).to_be_disabled()

    before = len(outbox.outbox)
    assert advance_to_rest(run).status == "completed"
    [order] = made(world, "orders", run)
    assert order["wanted"]["lines"][1]["quantity"] == 11
    assert len(made(world, "prices", run)) == 1
    assert len(outbox.outbox) == before
    assert "The customers are not told: They were told by telephone." in state(run)["summary"]
    first.goto(f"/runs/{run.pk}/")
    expect(first.locator(".timeline")).to_contain_text("skipped")
    assert said == [[], []]


@pytest.mark.long
def test_it_is_decided_by_keyboard_alone(new_page: NewPage) -> None:
    """Whoever pressed `e` before they had gone to one of the actions saw a page that does not listen."""
    team = make_team()
    gate = open_gate(make_restock(team=team))
    page = new_page(ann(team))
    said = watched(page)
    assert check_each_look(page, f"/gates/{gate.pk}/", said) == []
    page.keyboard.press("e")
    expect(page.locator("[data-ballot][value=edit]").first).to_be_checked()
    expect(page.locator("#action-order .item input:focus")).to_have_count(1)
    page.keyboard.press("Escape")
    page.keyboard.press("1")
    page.keyboard.press("a")
    page.keyboard.press("2")
    page.keyboard.press("r")
    expect(page.locator("[name='reason.price']")).to_be_focused()
    page.keyboard.type("a e r 1 stay words")
    page.keyboard.press("Escape")
    expect(page.locator("#action-price")).to_be_focused()
    page.keyboard.press("3")
    page.keyboard.press("p")
    expect(page.locator("[name='response.message']")).to_be_focused()
    page.keyboard.type("I rang both.")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#gate-news")).to_contain_text("Approved 1, rejected 1, answered 1 by Ann Okafor")
    assert Gate.objects.get(pk=gate.pk).outcome.proposal.card.actions[1].settled.reason == "a e r 1 stay words"  # type: ignore[union-attr]
