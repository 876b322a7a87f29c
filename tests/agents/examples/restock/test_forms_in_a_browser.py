"""An order's lines edited in a real browser, with script in place and without it page by page."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from approvals.models import Gate
from tests.factories import ann
from tests.factories.driven_runs import open_gate
from tests.harness.browser_checks import check, each_width, watched
from tests.harness.examples import first_alone

from .restock_runs import make_restock

NewPage = Callable[..., Page]
NEW = "[name='args.order/lines/~new1/{}']"


def lines(gate: Gate) -> list[tuple[str, int]]:
    found = Gate.objects.get(pk=gate.pk).standing().card.action("order")
    assert found is not None
    return [(line["sku"], line["quantity"]) for line in found.arguments["lines"]]


@pytest.mark.parametrize("script", first_alone([True, False]))
def test_a_line_is_added_moved_filled_in_and_another_taken_out(new_page: NewPage, script: bool) -> None:
    gate = open_gate(make_restock())
    (first, _), (second, bought), (third, _) = lines(gate)
    page = new_page(ann(gate.team), java_script_enabled=script)
    said = watched(page)
    page.goto(f"/gates/{gate.pk}/")
    page.fill("[name='args.order/lines/1/quantity']", "11")
    order = page.locator("#action-order")
    order.get_by_role("button", name="Add line").click()
    page.fill(NEW.format("sku"), first)
    page.fill(NEW.format("quantity"), "7")
    page.fill(NEW.format("price"), "6.40")
    page.fill(NEW.format("needed_by"), "2026-03-06T08:15")
    page.fill("[name='args.order!zone/lines/~new1/needed_by']", "+01:00")
    order.get_by_role("button", name="Remove Line 1").click()
    expect(order.get_by_role("list", name="Removed").get_by_role("listitem")).to_have_count(1)
    order.get_by_role("button", name="Move Line 3 up").click()
    expect(order.locator(".row").nth(1).locator(NEW.format("quantity"))).to_have_value("7")
    expect(page.locator("[name='args.order/lines/1/quantity']")).to_have_value("11")
    expect(page.locator("[name='verdict.order'][value=edit]")).to_be_checked()
    page.locator("#action-price label[data-choice=approve]").click()
    page.locator("#action-message label[data-choice=approve]").click()
    assert Gate.objects.get(pk=gate.pk).status == "open"
    page.locator("[data-commit]:visible").click()
    expect(page.locator("#gate-news")).to_contain_text("by Ann Okafor")
    assert lines(gate) == [(second, 11), (first, 7), (third, lines(gate)[2][1])]
    assert bought != 11
    assert said == []


def test_another_branch_shows_its_fields_in_place_and_a_draft_brings_them_back(new_page: NewPage) -> None:
    gate = open_gate(make_restock())
    page = new_page(ann(gate.team))
    page.goto(f"/gates/{gate.pk}/")
    page.select_option("[name='args.order!branch/delivery']", "courier")
    street = page.locator("[name='args.order/delivery/address/street']")
    street.fill("Kai 4")
    page.locator("#action-order").get_by_role("button", name="Add line").click()
    expect(page.locator(NEW.format("sku"))).to_be_visible()
    with page.expect_response(
        lambda answer: "/drafts/" in answer.url and "TEA-100" in (answer.request.post_data or "")
    ):
        page.fill(NEW.format("sku"), "TEA-100")
    page.reload()
    expect(street).to_have_value("Kai 4")
    expect(page.locator(NEW.format("sku"))).to_have_value("TEA-100")


@pytest.mark.long
def test_what_is_typed_while_a_list_is_drawn_anew_is_kept(new_page: NewPage) -> None:
    gate = open_gate(make_restock())
    page = new_page(ann(gate.team))
    page.goto(f"/gates/{gate.pk}/")
    held: list[object] = []
    page.route("**/forms/", lambda route: held.append(route))
    page.locator("#action-order").get_by_role("button", name="Add line").click()
    page.fill("[name='args.order/lines/0/quantity']", "99")
    expect(page.locator("#form-args\\.order")).to_have_attribute("aria-busy", "true")
    held[0].continue_()  # type: ignore[attr-defined]
    expect(page.locator(NEW.format("sku"))).to_have_count(1)
    expect(page.locator("[name='args.order/lines/0/quantity']")).to_have_value("99")


@pytest.mark.long
def test_enter_in_a_field_presses_no_button_of_a_list(new_page: NewPage) -> None:
    gate = open_gate(make_restock())
    page = new_page(ann(gate.team))
    page.goto(f"/gates/{gate.pk}/")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.url.endswith("/forms/") else None)
    page.press("[name='args.order/lines/0/sku']", "Enter")
    page.get_by_role("button", name="Add line").click()
    expect(page.locator(NEW.format("sku"))).to_have_count(1)
    assert len(sent) == 1


@pytest.mark.long
@each_width
def test_the_form_has_no_fault_that_axe_can_find(new_page: NewPage, width: int) -> None:
    gate = open_gate(make_restock())
    page = new_page(ann(gate.team), viewport={"width": width, "height": 900})
    said = watched(page)
    page.goto(f"/gates/{gate.pk}/")
    page.locator("#action-order").get_by_role("button", name="Add line").click()
    page.fill(NEW.format("sku"), "TEA-100")
    page.select_option("[name='args.order!branch/delivery']", "courier")
    expect(page.locator("[name='args.order/delivery/address/street']")).to_be_visible()
    assert check(page, "", said) == []


def test_what_does_not_hold_is_said_beside_the_field_and_in_the_panel_while_it_is_typed(new_page: NewPage) -> None:
    gate = open_gate(make_restock())
    page = new_page(ann(gate.team))
    said = watched(page)
    page.goto(f"/gates/{gate.pk}/")
    quantity = page.locator("[name='args.order/lines/1/quantity']")
    quantity.fill("0")
    page.fill("[name='args.price/price']", "much")
    item = page.locator(".item", has=quantity)
    expect(item.locator(".error")).to_contain_text("greater than or equal to 1")
    expect(quantity).to_have_attribute("aria-invalid", "true")
    expect(page.locator(".item", has=page.locator("[name='args.price/price']")).locator(".error")).to_be_visible()
    panel = page.locator("#edit-faults")
    expect(panel).to_contain_text("2 fields to correct")
    panel.get_by_role("link", name="Line 2, Quantity").click()
    expect(quantity).to_be_focused()
    quantity.press_sequentially("5")
    expect(panel).to_contain_text("1 field to correct")
    expect(quantity).to_be_focused()
    expect(quantity).to_have_value("05")
    expect(item.locator(".error")).to_be_hidden()
    expect(quantity).not_to_have_attribute("aria-invalid", "true")
    assert check(page, "", said) == []


@pytest.mark.long
def test_an_edit_of_a_long_text_is_shown_word_by_word(new_page: NewPage) -> None:
    gate = open_gate(make_restock())
    page = new_page(ann(gate.team))
    page.goto(f"/gates/{gate.pk}/")
    message = page.locator("#action-message")
    message.get_by_text("Edit the text").click()
    text = page.locator("[name='args.message/text']")
    text.fill(text.input_value().replace("delivery", "small delivery").replace("put aside", "kept"))
    shown = message.locator(".verbatim").first
    expect(shown.locator("ins").first).to_contain_text("small")
    expect(shown.locator("del")).to_have_text(["put aside"])
    expect(message.locator(".my-edit td.prose ins").first).to_contain_text("small")
    expect(text).to_be_visible()
