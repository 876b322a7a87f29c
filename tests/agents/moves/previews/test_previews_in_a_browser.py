"""Putting a value in the place of what was proposed shows what that would do while it is typed, in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from tests.conftest import SharedWeb, sign_in
from tests.factories import ann

from .test_previews_at_the_gate import asked_again


@pytest.mark.long
def test_the_impact_of_a_value_in_its_place_is_drawn_while_it_is_typed(
    ledger: str, shared_web: SharedWeb, browser: Browser
) -> None:
    run, gate, _ = asked_again(ledger)
    base = shared_web({"HOLDPOINT_AGENTS": "tests.agents.moves.moved_agents"})
    context = browser.new_context(base_url=base)
    sign_in(context, ann(run.team), base)
    page = context.new_page()
    page.goto(f"/gates/{gate.pk}/")
    page.locator("label", has_text="Reject").first.click()
    page.get_by_label("Enter the result yourself and continue").check()
    told, value = page.locator("#edit-impact .impact:visible"), page.locator("[name='override.offer']")
    expect(told).to_have_count(1)
    expect(told).to_contain_text("If you replace the result with this")
    expect(told).to_contain_text("Undone")
    value.fill("10")
    expect(told).not_to_contain_text("Undone")
    expect(value).to_be_focused()
    expect(value).to_have_value("10")
    value.fill("11")
    expect(told).to_contain_text("Undone")
    context.close()
