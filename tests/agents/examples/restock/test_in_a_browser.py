"""Three actions in one gate in a real browser, by two people at once and by keyboard; and an order's lines edited."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.core import mail as outbox
from playwright.sync_api import Page, Route, expect

from approvals.models import Gate
from tests.agents.examples.refunds.conftest import World
from tests.factories import ann, bob, make_team
from tests.factories.driven_runs import advance_to_rest, open_gate, state
from tests.harness.browser_checks import check, check_each_look, is_live, watched
from tests.harness.waiting import until

from .test_agent import made, make_restock

NewPage = Callable[..., Page]
PRICE = "[name='args.price/price']"
QUANTITY = "[name='args.order/lines/1/quantity']"
NEW = "[name='args.order/lines/~new1/{}']"
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
    held: list[Route] = []  # and not ended, or the page would complain
    first.route("**/impacts/", lambda route: held.append(route), times=1)
    first.fill(PRICE, "52.50")
    until(lambda: first.evaluate("1") and held, what="the words are asked for")
    expect(button).not_to_contain_text("13.09", use_inner_text=True)  # never another amount than the field has
    held.pop().continue_()
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
    with first.expect_event("load"):  # a live update says it before
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
    assert said == [[], []]  # before the page is left, which ends what it still fetches
    first.goto(f"/runs/{run.pk}/")
    expect(first.locator(".timeline")).to_contain_text("skipped")


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


def lines(gate: Gate) -> list[tuple[str, int]]:
    found = Gate.objects.get(pk=gate.pk).standing().card.action("order")
    assert found is not None
    return [(line["sku"], line["quantity"]) for line in found.arguments["lines"]]


def test_lines_are_added_corrected_brought_back_by_a_draft_moved_and_taken_out(new_page: NewPage) -> None:
    gate = open_gate(make_restock())
    (first, _), (second, bought), (third, _) = lines(gate)
    page = new_page(ann(gate.team))
    said = watched(page)
    page.goto(f"/gates/{gate.pk}/")
    order, street = page.locator("#action-order"), page.locator("[name='args.order/delivery/address/street']")
    quantity = page.locator("[name='args.order/lines/1/quantity']")
    item, panel = page.locator(".item", has=quantity), page.locator("#edit-faults")

    quantity.fill("0")
    page.fill("[name='args.price/price']", "much")
    expect(item.locator(".error")).to_contain_text("greater than or equal to 1")
    expect(quantity).to_have_attribute("aria-invalid", "true")
    expect(panel).to_contain_text("2 fields to correct")
    assert check(page, "", said) == []
    panel.get_by_role("link", name="Line 2, Quantity").click()
    expect(quantity).to_be_focused()
    quantity.press_sequentially("5")
    expect(panel).to_contain_text("1 field to correct")
    expect(quantity).to_be_focused()
    expect(quantity).to_have_value("05")
    expect(item.locator(".error")).to_be_hidden()
    expect(quantity).not_to_have_attribute("aria-invalid", "true")
    page.fill("[name='args.price/price']", "13.50")

    quantity.fill("11")
    page.select_option("[name='args.order!branch/delivery']", "courier")
    street.fill("Kai 4")
    page.fill("[name='args.order/delivery/address/postcode']", "20359")
    page.fill("[name='args.order/delivery/address/city']", "Hamburg")
    order.get_by_role("button", name="Add line").click()
    page.fill(NEW.format("sku"), first)
    page.fill(NEW.format("quantity"), "7")
    page.fill(NEW.format("needed_by"), "2026-03-06T08:15")
    page.fill("[name='args.order!zone/lines/~new1/needed_by']", "+01:00")
    with page.expect_response(lambda answer: "/drafts/" in answer.url and "6.47" in (answer.request.post_data or "")):
        page.fill(NEW.format("price"), "6.47")
    page.reload()
    expect(street).to_have_value("Kai 4")
    expect(page.locator(NEW.format("price"))).to_have_value("6.47")

    order.get_by_role("button", name="Remove Line 1").click()
    expect(order.get_by_role("list", name="Removed").get_by_role("listitem")).to_have_count(1)
    order.get_by_role("button", name="Move Line 3 up").click()
    expect(order.locator(".row").nth(1).locator(NEW.format("quantity"))).to_have_value("7")
    expect(quantity).to_have_value("11")
    expect(page.locator("[name='verdict.order'][value=edit]")).to_be_checked()
    page.locator("#action-message label[data-choice=approve]").click()
    assert Gate.objects.get(pk=gate.pk).status == "open"
    page.locator("[data-commit]:visible").click()
    expect(page.locator("#gate-news")).to_contain_text("by Ann Okafor")
    assert lines(gate) == [(second, 11), (first, 7), (third, lines(gate)[2][1])]
    assert (bought != 11, said) == (True, [])


@pytest.mark.long
def test_what_is_typed_while_a_list_is_drawn_anew_is_kept_and_enter_presses_no_button_of_it(new_page: NewPage) -> None:
    gate = open_gate(make_restock())
    page = new_page(ann(gate.team))
    page.goto(f"/gates/{gate.pk}/")
    sent: list[object] = []
    page.route("**/forms/", lambda route: sent.append(route))
    page.press("[name='args.order/lines/0/sku']", "Enter")
    page.locator("#action-order").get_by_role("button", name="Add line").click()
    page.fill("[name='args.order/lines/0/quantity']", "99")
    expect(page.locator("#form-args\\.order")).to_have_attribute("aria-busy", "true")
    [route] = sent
    route.continue_()  # type: ignore[attr-defined]
    expect(page.locator(NEW.format("sku"))).to_have_count(1)
    expect(page.locator("[name='args.order/lines/0/quantity']")).to_have_value("99")
