"""People decide about a graph's calls in a real browser, and the model's transcript shows that it knows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from checkpoints.models import Run
from tests.agents.langgraph.test_questions import asking, begun, heard, ids
from tests.factories import ann
from tests.factories.driven_runs import advance_to_rest, open_gate, state

NewPage = Callable[..., Page]


@pytest.fixture
def web(shared_web: Callable[..., str]) -> str:
    """The base URL of a web server that knows these agents."""
    return shared_web({"HOLDPOINT_AGENTS": "tests.agents.langgraph.graphs"})


def gate_page(new_page: NewPage, run: Run) -> Page:
    page = new_page(ann(run.team))
    page.goto(f"/gates/{open_gate(run).pk}/")
    return page


def verdict(page: Page, action: str, named: str) -> Locator:
    """Choose a verdict beside one action; the action's part of the page."""
    part = page.locator(f'[id="action-{action}"]')
    part.locator(f'[data-ballot][value="{named}"]').check(force=True)
    return part


def send(page: Page) -> None:
    page.locator(".commit:visible").click()
    expect(page.locator(".commit:visible")).to_have_count(0)


def test_four_calls_are_approved_edited_rejected_and_answered_and_the_model_knows(new_page: NewPage) -> None:
    run = asking("four-calls")
    approved, rejected, edited, answered = ids(run)
    page = gate_page(new_page, run)
    verdict(page, approved, "approve")
    verdict(page, rejected, "reject").locator("textarea[name^=reason]").fill("No letters.")
    part = verdict(page, edited, "edit")
    part.get_by_label("Amount").fill("2")
    verdict(page, answered, "respond").locator("textarea[name^=response]").fill("I called him.")
    send(page)
    told = heard(run)
    assert "paid 5 to Ada" in told
    assert "No letters. Do not do it another way." in told
    assert "Do not re-issue your original call" in told
    assert "paid 2 to Bob" in told
    assert "tool: I called him." in told


def test_a_response_schema_is_filled_in_as_a_form(new_page: NewPage) -> None:
    run = begun("typed", customer="Ada")
    page = gate_page(new_page, run)
    expect(page.locator("[data-choice=edit]")).to_contain_text("Answer")
    amount, reason = page.get_by_label("Amount"), page.get_by_label("Reason")
    expect(amount.locator("xpath=ancestor::*[@data-field]")).not_to_contain_text("as proposed")
    expect(reason.locator("xpath=ancestor::*[@data-field]")).to_contain_text("as proposed")
    amount.fill("9")
    expect(page.locator(".commit:visible")).to_contain_text("Answer: the agent continues")
    send(page)
    run = advance_to_rest(run)
    assert state(run)["answer"] == "9 because it was late"
