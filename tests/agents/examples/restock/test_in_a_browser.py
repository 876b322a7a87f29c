"""Three actions in one gate in a real browser: one approved, one edited in a nested list, one rejected with a reason.

Two people look at it at once, and one of them is faster.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.core import mail as outbox
from playwright.sync_api import Page, expect

from approvals.models import Gate
from tests.agents.examples.refunds.conftest import World
from tests.factories import ann, bob, make_team, make_user
from tests.factories.driven_runs import advance_to_rest, open_gate, state
from tests.harness.browser_checks import check_each_look, is_live, watched

from .restock_runs import made, make_restock

NewPage = Callable[..., Page]
QUANTITY = "[name='args.order/lines/1/quantity']"
REASON = "[name='reason.message']"
ALL = re.compile(r"Approve with edit: place the order, change the price to €[\d.]+, tell the customers")
MIX = re.compile(r"Approve with edit: place the order, change the price to €[\d.]+; reject 1")


def opened(new_page: NewPage, **context: Any) -> tuple[Gate, Page]:
    """A gate of three actions, and its page before one who may decide it."""
    team = make_team()
    gate = open_gate(make_restock(team=team))
    page = new_page(ann(team), **context)
    page.goto(f"/gates/{gate.pk}/")
    return gate, page


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
def test_what_was_chosen_and_typed_for_each_outlives_a_sign_out(new_page: NewPage) -> None:
    team = make_team()
    gate = open_gate(make_restock(team=team))
    user = make_user("Ann Okafor", team, password="correct horse")
    page = new_page(user)
    page.goto(f"/gates/{gate.pk}/")
    page.fill(QUANTITY, "11")
    choose(page, "price", "approve")
    choose(page, "message", "reject")
    with page.expect_response("**/drafts/"):
        page.fill(REASON, "They were told by telephone.")
    page.locator(".account summary").click()
    page.get_by_role("button", name="Sign out").click()
    page.goto(f"/gates/{gate.pk}/")
    page.fill("[name=login]", user.username)
    page.fill("[name=password]", "correct horse")
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.locator(QUANTITY)).to_have_value("11")
    expect(page.locator(REASON)).to_have_value("They were told by telephone.")
    expect(page.locator("[name='verdict.price'][value=approve]")).to_be_checked()
    expect(page.locator("#edit-impact [data-effect=skip]")).to_contain_text("Tell the customers; rejected")
    expect(page.locator("[data-commit]:visible")).to_contain_text(MIX)


@pytest.mark.long
def test_it_is_decided_by_keyboard_alone(new_page: NewPage) -> None:
    gate, page = opened(new_page)
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


@pytest.mark.long
def test_a_key_that_only_actions_have_is_the_first_ones_where_none_was_gone_to(new_page: NewPage) -> None:
    """Nothing happened: whoever pressed `e` at a gate that asks for several things saw a page that does not listen."""
    _, page = opened(new_page)
    page.keyboard.press("e")
    expect(page.locator("[data-ballot][value=edit]").first).to_be_checked()
    expect(page.locator("[data-ballot]:checked")).to_have_count(1)
    expect(page.locator("#action-order .item input:focus")).to_have_count(1)


@pytest.mark.long
def test_all_of_them_at_once_and_back_to_one_by_one(new_page: NewPage) -> None:
    gate, page = opened(new_page)
    page.locator("#decide label[data-choice=approve]").click()
    expect(page.locator("[data-ballot][value=approve]:checked")).to_have_count(3)
    choose(page, "price", "reject")
    expect(page.locator("[name=verdict][value=each]")).to_be_checked()
    expect(page.locator("[data-commit]:visible")).to_contain_text("Write a reason for action 2")
    page.locator("[name='reason.price']").fill("Too dear.")
    expect(page.locator("[data-commit]:visible")).to_contain_text(
        "Approve: place the order, tell the customers; reject 1"
    )
    page.locator("[name='reason.price']").fill("")
    page.locator("#decide label[data-choice=reject]").click()
    expect(page.locator("[data-ballot][value=reject]:checked")).to_have_count(3)
    expect(page.locator("[data-commit]:visible")).to_contain_text("Write a reason to reject")
    page.fill("#feedback", "Not this month.")
    expect(page.locator("[data-commit]:visible")).to_contain_text("Reject and ask the agent to try again")
    assert Gate.objects.get(pk=gate.pk).status == "open"


@pytest.mark.long
def test_without_script_the_consequences_are_shown_and_a_mix_is_sent(new_page: NewPage) -> None:
    _, page = opened(new_page, java_script_enabled=False)
    page.locator("#decide label[data-choice=each]").click()
    choose(page, "order", "approve")
    choose(page, "price", "reject")
    choose(page, "message", "respond")
    page.fill("[name='response.message']", "I rang both.")
    page.get_by_role("button", name="Show the consequences").click()
    expect(page.locator("#edit-impact")).to_contain_text("Skipped")
    page.get_by_role("button", name="Approve: place the order; reject 1; answer 1 instead").click()
    expect(page.locator("#reason-2-error")).to_contain_text("Say why")
    page.fill("[name='reason.price']", "Not before Easter.")
    page.locator("[data-commit]:visible").click()
    expect(page.locator("#gate-news")).to_contain_text("Approved 1, rejected 1, answered 1 by Ann Okafor")


@pytest.mark.long
@pytest.mark.examples
def test_the_page_has_no_fault_that_axe_can_find(new_page: NewPage) -> None:
    team = make_team()
    gate = open_gate(make_restock(team=team))
    page = new_page(ann(team))
    said = watched(page)
    faults = check_each_look(page, f"/gates/{gate.pk}/", said)
    choose(page, "order", "approve")
    choose(page, "price", "reject")
    choose(page, "message", "respond")
    faults += check_each_look(page, "", said)
    assert faults == []
