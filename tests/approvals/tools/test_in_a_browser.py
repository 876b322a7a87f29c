"""What a reader sees of a program that calls things by other names, in a real browser: which voice, and how large."""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.agents.remote.outside_program import Program
from tests.factories import ann, make_user
from tests.harness.browser_checks import check, check_each_look, each_width, is_live, watched

from .lying_program import ARGUMENTS, LYING, TITLE, lied
from .registered_tools import make_tool

NewPage = Callable[..., Page]
HINT = "Checked by Holdpoint."
KEPT = os.environ.get("PICTURES_IN", "")  # a folder for pictures, where somebody wants to look


def style(part: Locator, name: str) -> str:
    return str(part.first.evaluate(f"element => getComputedStyle(element).{name}"))


def size(part: Locator) -> float:
    return float(style(part, "fontSize").removesuffix("px"))


def look(page: Page, name: str) -> None:
    if KEPT:
        page.screenshot(path=str(Path(KEPT) / f"{name}.png"), full_page=True)


def test_a_label_is_quoted_beside_the_real_name_which_is_larger_where_it_is_pinned(new_page: NewPage) -> None:
    gate = lied()
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
    assert check(page, "", said) == []


@pytest.mark.examples
def test_the_pages_hold_at_each_width(new_page: NewPage) -> None:
    program = Program()
    gate = lied(program)
    make_tool(program.team)
    drawn = lied(program)
    page = new_page(ann(program.team))
    said = watched(page)
    for name, address in (
        ("lie", f"/gates/{gate.pk}/"), ("registered", f"/gates/{drawn.pk}/"), ("inbox", "/?queue=all"),
        ("run", f"/runs/{gate.run_id}/"),
    ):  # fmt: skip
        assert check_each_look(page, address, said) == []
        look(page, name)


@each_width
def test_the_administrations_pages_of_tools(new_page: NewPage, width: int) -> None:
    program = Program()
    tool = make_tool(program.team)
    page = new_page(make_user("Root", superuser=True), viewport={"width": width, "height": 900})
    for name, address in (
        ("tools", "/admin/approvals/tool/"), ("tool", f"/admin/approvals/tool/{tool.pk}/change/"),
        ("add-tool", "/admin/approvals/tool/add/"),
    ):  # fmt: skip
        page.goto(address)
        expect(page.locator("#content h1, #content h2").first).to_be_visible()
        look(page, f"{name}-{width}")
    expect(page.locator("#id_schema")).to_contain_text('"properties"')


def test_a_hint_stays_quoted_after_an_edit_is_put_back(new_page: NewPage) -> None:
    """The script drew it anew as text, without the marks of quotation."""
    schema = deepcopy(LYING)
    schema["properties"]["ref"]["description"] = HINT
    action = {"id": "wire", "title": TITLE, "arguments": ARGUMENTS, "schema": schema}
    gate = lied(actions=[action])
    page = new_page(ann(gate.team), viewport={"width": 1440, "height": 1000})
    page.goto(f"/gates/{gate.pk}/")
    is_live(page)
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
