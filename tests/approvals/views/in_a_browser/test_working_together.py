"""Somebody asks the agent, mentions a colleague, leaves a part out, and meets another version: in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from agents.questions import answering
from approvals.models import AgentQuestion, Gate, Outcome
from checkpoints.models import Event
from tests.agents.questions.questioned_agents import WAS
from tests.agents.questions.test_answering import waiting_gate
from tests.conftest import SharedWeb, sign_in
from tests.factories import ann, bob, decide
from tests.factories.driven_runs import advance_to_rest
from tests.harness.browser_checks import check, is_live, watched
from tests.harness.known_agents import knowing_only
from tests.harness.waiting import until

AGENTS = "tests.agents.questions.questioned_agents"


@pytest.fixture
def page_at(
    shared_web: SharedWeb, browser: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[Gate], Page]]:
    """page_at(gate) -> the gate's page as ann sees it, live, by a server that knows the agents that ask here."""
    with knowing_only(AGENTS, settings, monkeypatch):
        base = shared_web()
        contexts = []

        def at(gate: Gate) -> Page:
            contexts.append(context := browser.new_context(base_url=base))
            sign_in(context, ann(gate.team), base)
            page: Page = context.new_page()
            page.goto(f"/gates/{gate.pk}/")
            is_live(page)
            return page

        yield at
        for each in contexts:
            each.close()


def test_the_proposal_changes_while_i_edit_and_ask_and_nothing_is_lost(
    page_at: Callable[[Gate], Page], tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    gate = waiting_gate(ledger, quorum=2)
    page = page_at(gate)
    said = watched(page)
    amount, note = page.locator("[name='args.pay/amount']"), page.locator("[name='args.pay/note']")
    field, thread = page.locator("#ask"), page.locator("#gate-remarks")
    amount.fill("80")
    note.fill("My own words.")
    expect(page.locator("[data-draft-note]")).to_contain_text("Draft saved")
    # A question, answered with the gate open.
    field.fill("Why seven?")
    page.get_by_role("button", name="Ask the agent", exact=True).click()
    expect(thread).to_contain_text("No answer yet.")
    expect(field).to_have_value("")
    assert answering.answer(AgentQuestion.objects.get(gate=gate).pk)
    expect(thread.locator("blockquote.voice")).to_contain_text("asked “Why seven?”")
    assert Gate.objects.get(pk=gate.pk).status == "open"
    expect(amount).to_have_value("80")
    # Another version meanwhile: what only one of the two changed is merged, what both changed is chosen.
    field.fill("And why")
    decide(gate, bob(gate.team), "edit", arguments={"pay": {"amount": 9, "note": ""}})
    expect(page.locator("#gate-news")).to_contain_text("Bob Lindqvist edited this gate")
    expect(page.locator("#gate-news ins").first).to_have_text("9")
    expect(amount).to_have_value("80")
    page.get_by_role("link", name="Show the new version").click()
    expect(page.locator("#since-look")).to_contain_text("Changed since you looked at")
    expect(note).to_have_value("My own words.")
    expect(field).to_have_value("And why")
    conflict = page.locator(".conflict")
    expect(conflict).to_have_count(1)
    expect(conflict).to_contain_text("80")
    expect(page.locator(".my-edit del", has_text="(empty)")).to_be_visible()
    page.wait_for_load_state("networkidle")  # it loads once more where the rest of the draft came with the click
    expect(conflict).to_have_count(1)
    assert check(page, "", said) == []
    page.locator("[data-commit]:visible").click()
    expect(page.locator("#refusal")).to_contain_text("Choose whose value counts")
    expect(field).to_have_value("And why")
    page.locator(".conflict [value=theirs]").check()
    expect(amount).to_have_value("9")
    page.locator(".conflict [value=mine]").check()
    expect(amount).to_have_value("80")
    page.locator("[data-commit]:visible").click()
    expect(page.locator("#gate-news")).to_contain_text("Approved by you")
    made = gate.proposals.latest("number").card.actions[0].arguments
    assert made == {"amount": 80, "note": "My own words."}
    # What was approved is what ran, and the page says so by itself.
    decide(gate, bob(gate.team))
    advance_to_rest(gate.run)
    expect(page.locator("#gate-receipt")).to_contain_text("Done")
    assert ledger.read_text().splitlines() == ["asked Why seven?", "paid 80"]


def test_a_stretch_is_left_out_a_colleague_mentioned_and_that_is_my_edit(
    page_at: Callable[[Gate], Page], tmp_path: Path
) -> None:
    gate = waiting_gate(tmp_path / "ledger", "writer")
    mate = bob(gate.team)
    page = page_at(gate)
    said = watched(page)
    box, edit = page.locator("[name='drop.args.pay/note.2']"), page.locator("[name=verdict][value=edit]")
    as_proposed = page.locator(".item-note").get_by_text("as proposed").first
    expect(as_proposed).to_be_visible()
    box.check()
    expect(edit).to_be_checked()
    expect(as_proposed).to_be_hidden()
    expect(page.locator(".my-edit:visible")).to_contain_text("line 10")
    page.locator("#ask").focus()
    page.keyboard.type("Look, @bo")
    expect(page.locator("#mentions [role=option]")).to_have_count(1)
    assert check(page, "", said) == []
    page.keyboard.press("Enter")
    page.keyboard.type("please")
    page.keyboard.press("Enter")
    expect(page.locator("#gate-remarks")).to_contain_text(f"Look, @{mate.username} please")
    assert Event.objects.filter(subject=gate.subject, kind="gate.mentioned").count() == 1
    box.uncheck()
    expect(edit).not_to_be_checked()
    box.check()
    page.locator("[data-commit]:visible").click()
    until(lambda: Gate.objects.get(pk=gate.pk).status == "decided", what="it is decided")
    assert Outcome.objects.get(gate=gate).approved().actions[0].arguments["note"] == WAS.replace("line 2\n", "LINE 2\n")
