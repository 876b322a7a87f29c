"""Somebody asks the agent, meets another version, and leaves a part out: in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from agents.questions import answering
from approvals.models import AgentQuestion, Gate
from tests.agents.questions.questioned_agents import WAS
from tests.agents.questions.test_answering import waiting_gate
from tests.conftest import SharedWeb
from tests.factories import ann, bob, decide
from tests.factories.driven_runs import advance_to_rest, make_run, open_gate
from tests.harness.browser_checks import check, is_kept, is_live, watched
from tests.harness.known_agents import knowing_only


@pytest.fixture
def web(shared_web: SharedWeb, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The base URL of a web server that knows the agents that are asked here."""
    with knowing_only("tests.agents.questions.questioned_agents", settings, monkeypatch):
        yield shared_web()


def test_the_proposal_changes_while_i_edit_and_ask_nothing_is_lost_and_a_stretch_left_out_is_my_edit(
    web: str, new_page: Callable[..., Page], tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    gate = waiting_gate(ledger, quorum=2)
    page = new_page(ann(gate.team))
    said = watched(page)
    page.goto(f"/gates/{gate.pk}/")
    is_live(page)
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
    is_kept(page)
    page.get_by_role("link", name="Show the new version").click()
    expect(page.locator("#since-look")).to_contain_text("Changed since you looked at")
    expect(note).to_have_value("My own words.")
    expect(field).to_have_value("And why")
    conflict = page.locator(".conflict")
    expect(conflict).to_have_count(1)
    expect(conflict).to_contain_text("80")
    expect(page.locator(".my-edit del", has_text="(empty)")).to_be_visible()
    assert check(page, "", said) == []
    page.locator("[data-commit]:visible").click()
    expect(page.locator("#refusal")).to_contain_text("Choose whose value counts")
    expect(page.locator("#refusal")).to_be_focused()
    expect(field).to_have_value("And why")
    page.locator(".conflict [value=theirs]").check()
    expect(amount).to_have_value("9")
    page.locator(".conflict [value=mine]").check()
    expect(amount).to_have_value("80")
    with page.expect_event("load"):  # a live update says it before
        page.locator("[data-commit]:visible").click()
    expect(page.locator("#gate-news")).to_contain_text("Approved by you")
    made = gate.proposals.latest("number").card.actions[0].arguments
    assert made == {"amount": 80, "note": "My own words."}
    # What was approved is what ran, and the page says so by itself.
    decide(gate, bob(gate.team))
    advance_to_rest(gate.run)
    expect(page.locator("#gate-receipt")).to_contain_text("Done")
    assert ledger.read_text().splitlines() == ["asked Why seven?", "paid 80"]

    # A stretch of a text is left out, and that is my edit.
    gate = open_gate(advance_to_rest(make_run("writer", team=gate.team, ledger=str(ledger))))
    page.goto(f"/gates/{gate.pk}/")
    is_live(page)
    box, edit = page.locator("[name='drop.args.pay/note.2']"), page.locator("[name=verdict][value=edit]")
    as_proposed = page.locator(".item-note").get_by_text("as proposed").first
    expect(as_proposed).to_be_visible()
    box.check()
    expect(edit).to_be_checked()
    expect(as_proposed).to_be_hidden()
    expect(page.locator(".my-edit:visible")).to_contain_text("line 10")
    box.uncheck()
    expect(edit).not_to_be_checked()
    box.check()
    page.locator("[data-commit]:visible").click()
    expect(page.locator("#gate-news")).to_contain_text("Approved by you")
    [made] = gate.proposals.latest("number").card.actions
    assert made.arguments["note"] == WAS.replace("line 2\n", "LINE 2\n")
