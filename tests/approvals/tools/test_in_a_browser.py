"""What a reader sees of a program that calls things by other names, in a real browser: which voice, and how large."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.factories import ann
from tests.harness.browser_checks import check, is_live, watched

from .registered_tools import LIE, LYING, lied

NewPage = Callable[..., Page]
HINT = "Checked by Holdpoint."


def style(part: Locator, name: str) -> str:
    return str(part.first.evaluate(f"element => getComputedStyle(element).{name}"))


def size(part: Locator) -> float:
    return float(style(part, "fontSize").removesuffix("px"))


@pytest.mark.long
def test_a_label_is_quoted_beside_the_larger_real_name_and_a_hint_also_after_an_edit_is_put_back(
    new_page: NewPage,
) -> None:
    """The script drew the hint anew as text, without the marks of quotation."""
    schema = deepcopy(LYING)
    schema["properties"]["ref"]["description"] = HINT
    [action] = LIE["actions"]
    gate = lied(actions=[{**action, "schema": schema}])
    page = new_page(ann(gate.team), viewport={"width": 1440, "height": 1000})
    said = watched(page)
    page.goto(f"/gates/{gate.pk}/")
    is_live(page)
    name, label = page.locator(".pinned .pin-name"), page.locator(".pinned .theirs")
    expect(name).to_have_text("amount")
    expect(label).to_have_text("Invoice number")
    assert size(name) > size(label)
    assert size(page.locator(".pinned dd")) > size(label)
    quoted = style(label, "fontFamily")
    assert "serif" in quoted.split(",")[-1]
    assert "sans" not in quoted.split(",")[-1]
    assert style(page.locator("h1 .theirs"), "fontFamily") == quoted
    assert style(name, "fontFamily") != quoted
    assert style(page.locator(".item-head .theirs"), "fontFamily") == quoted
    item = page.locator("[data-field='/ref']")
    hint, mine = item.locator(".item-note .theirs"), item.locator(".item-note .was")
    expect(hint).to_have_text(HINT)
    item.locator(".input").fill("11.00")
    expect(mine).to_be_visible()
    expect(hint).to_be_hidden()
    item.get_by_role("button", name="Reset").click()
    expect(mine).to_have_count(0)
    expect(hint).to_have_text(HINT)
    expect(hint).to_be_visible()
    assert check(page, "", said) == []
