"""A word on each action where one of them was done before, in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from agents.moves import rewind
from approvals.models import Gate
from tests.approvals.cards.verdicts.test_loops import seq_of
from tests.approvals.cards.verdicts.verdict_forms import lines, make_three
from tests.conftest import SharedWeb, sign_in
from tests.factories import ann, make_user
from tests.factories.driven_runs import advance_to_rest, decide, open_gate
from tests.harness.browser_checks import check, is_live, watched


def give(page: Page, action: str, verdict: str) -> None:
    page.locator(f"label[data-choice='{verdict}']", has=page.locator(f"[name='verdict.{action}']")).click()


@pytest.mark.long
def test_only_what_is_approved_has_to_be_confirmed(ledger: Path, shared_web: SharedWeb, browser: Browser) -> None:
    run = make_three(ledger)
    decide(run)
    assert advance_to_rest(run).status == "completed"
    other = [{"op": "replace", "path": "/three/amount", "value": 30}]
    rewind.edit(run, at=seq_of(run, "look"), patch=other, by=make_user("Bob Lindqvist", run.team))
    advance_to_rest(run)
    gate = open_gate(run)
    base = shared_web()
    context = browser.new_context(base_url=base, viewport={"width": 390, "height": 844})
    sign_in(context, ann(run.team), base)
    page = context.new_page()
    complaints = watched(page)
    page.goto(f"/gates/{gate.pk}/")
    is_live(page)
    panel = page.locator("#edit-impact")
    give(page, "b", "reject")
    expect(panel).to_contain_text("Skipped")
    for action, verdict in (("a", "approve"), ("b", "reject"), ("c", "approve")):
        give(page, action, verdict)
    need = page.locator("[data-need]:visible")
    expect(need).to_contain_text("Write a reason for action 2")
    need.click()
    expect(page.locator("[name='reason.b']")).to_be_focused()
    page.keyboard.type("Not this one.")
    expect(need).to_have_count(0)
    commit = page.locator(".commit:visible")
    expect(commit).to_contain_text("Approve: do three; reject 1")  # the others were done with these very values
    box = page.get_by_label("Do it again").locator("visible=true")
    expect(box).to_have_count(1)
    commit.click()
    expect(box).to_be_focused()
    assert check(page, "", complaints) == []
    give(page, "c", "reject")
    expect(box).to_have_count(0)
    give(page, "c", "approve")
    expect(box).to_have_count(1)
    assert Gate.objects.get(pk=gate.pk).status == "open"
    box.check()
    commit.click()
    expect(page.locator("#gate-line")).to_contain_text("Approved 2, rejected 1 by Ann Okafor")
    assert advance_to_rest(run).status == "completed"
    done = lines(ledger)
    assert [line for line in done if line.startswith("three")] == ["three 3", "three 30"]
    assert "undo two" in done
    context.close()
