"""An order's lines edited in a real browser, with script in place; test_forms.py does the same without."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from approvals.models import Gate
from tests.factories import ann
from tests.factories.driven_runs import open_gate
from tests.harness.browser_checks import check, watched

from .restock_runs import make_restock

NewPage = Callable[..., Page]
NEW = "[name='args.order/lines/~new1/{}']"


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
