"""Several actions of which one is changed: one press approves all of them, and the button says so before."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from approvals.models import Gate
from tests.factories import ann, make_team
from tests.factories.driven_runs import open_gate
from tests.harness.browser_checks import each_width

from .restock_runs import make_restock

NewPage = Callable[..., Page]
PRICE = "[name='args.price/price']"


def opened(new_page: NewPage, width: int) -> tuple[Gate, Page]:
    team = make_team()
    gate = open_gate(make_restock(team=team))
    page = new_page(ann(team), viewport={"width": width, "height": 844})
    page.goto(f"/gates/{gate.pk}/")
    return gate, page


@each_width
def test_one_changed_of_several_and_all_approved_is_one_press(new_page: NewPage, width: int) -> None:
    gate, page = opened(new_page, width)
    button, before = page.locator("[data-commit]:visible"), page.locator(PRICE).input_value()
    page.fill(PRICE, "52.50")
    expect(button).to_contain_text("Approve with edit: place the order, change the price to €52.50, tell the customers")
    page.fill(PRICE, before)
    expect(button).to_have_count(0)
    page.locator("#decide label[data-choice=approve]").click()
    expect(button).to_contain_text(f"change the price to €{before}")
    page.fill(PRICE, "52.50")
    expect(button).to_contain_text("Approve with edit: place the order, change the price to €52.50, tell the customers")
    page.locator("#decide label[data-choice=approve]").click()
    expect(button).to_contain_text("Approve with edit: place the order, change the price to €52.50, tell the customers")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#gate-news")).to_contain_text("Approved with an edit by Ann Okafor")
    told = Gate.objects.get(pk=gate.pk).outcome.by_action
    assert told == {"order": "approve", "price": "edit", "message": "approve"}


def test_the_button_never_names_another_amount_than_the_field(new_page: NewPage) -> None:
    _, page = opened(new_page, 1440)
    button = page.locator("[data-commit]:visible")
    page.fill(PRICE, "52.50")
    expect(button).to_contain_text("change the price to €52.50")
    page.route("**/impacts/", lambda route: route.abort())
    page.fill(PRICE, "53.00")
    expect(button).not_to_contain_text("52.50", use_inner_text=True)
    expect(button).to_contain_text("Approve with edit", use_inner_text=True)
