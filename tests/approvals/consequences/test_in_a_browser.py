"""Two reviewers at one gate, and a gate that would send a mail twice, in a real browser."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, Page, expect

from approvals.models import Gate
from tests.agents.moves.moved_runs import lines
from tests.approvals.consequences.test_repeats import asked_again, told_at
from tests.conftest import SharedWeb, sign_in
from tests.factories import ann, bob, make_gate, make_policy, make_team
from tests.factories.driven_runs import advance_to_rest
from tests.harness.browser_checks import check, is_live, watched
from tests.harness.waiting import until

NewPage = Callable[..., Page]
LAST = "Yours is the last approval needed"
PREVIEWED = "document.querySelector('#says-edit').dataset.says === document.querySelector('[name=typed]').value"


def choose(page: Page, verdict: str) -> None:
    page.locator(f"label[data-choice='{verdict}']").first.click()


@pytest.mark.long
def test_the_panel_follows_the_vote_of_somebody_else_and_keeps_what_is_typed(new_page: NewPage) -> None:
    """It went on saying that one more had to agree, and the press ran everything."""
    team = make_team()
    gate = make_gate(policy=make_policy(team, quorum=2))
    pages = [new_page(person) for person in (ann(team), bob(team))]
    for page in pages:
        page.goto(f"/gates/{gate.pk}/")
        is_live(page)
    first, second = pages
    second.locator(".comment summary").click()
    second.fill("#comment", "I have checked the order.")
    choose(second, "approve")
    expect(second.locator("#impact-approve")).to_contain_text("Yours is approval 1 of 2")
    choose(first, "approve")
    first.locator(".commit:visible").click()
    expect(first.locator("#gate-news")).to_contain_text("Approved by you.")
    expect(second.locator("#impact-approve")).to_contain_text(LAST)
    expect(second.locator("#comment")).to_have_value("I have checked the order.")
    assert second.locator("[name='verdict'][value='approve']").is_checked()
    second.locator(".commit:visible").click()
    expect(second.locator("#gate-line")).to_contain_text("Approved by")
    assert Gate.objects.get(pk=gate.pk).status == "decided"


def test_what_was_told_before_is_told_again_only_where_its_box_is_ticked(
    ledger: str, shared_web: SharedWeb, browser: Browser
) -> None:
    """The gate said "once each", and the mail went out a second time."""
    run, gate = asked_again(ledger)
    _, at = told_at(run)
    base = shared_web()
    context = browser.new_context(base_url=base)
    sign_in(context, ann(run.team), base)
    page = context.new_page()
    complaints = watched(page)
    page.goto("/")
    expect(page.locator(f"#gate-{gate.pk}")).to_contain_text("“Tell” was already done at")
    page.goto(f"/gates/{gate.pk}/")
    panel = page.locator("#impact-approve")
    expect(panel).to_contain_text(f"(checkpoint {at}). Approving may do it again.")
    page.keyboard.press("a")
    page.keyboard.press("Control+Enter")
    until(lambda: page.evaluate(PREVIEWED), what="the panel is drawn anew, with what is marked in it")
    expect(panel.get_by_text("Tick this to confirm it")).to_be_visible()
    box = panel.get_by_label("Do it again")
    expect(box).to_be_focused()
    assert Gate.objects.get(pk=gate.pk).status == "open"
    assert check(page, "", complaints) == []
    page.keyboard.press("Space")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#gate-line")).to_contain_text("Approved by Ann Okafor")
    assert advance_to_rest(run).status == "completed"
    assert [line.split()[0] for line in lines(ledger)].count("tell") == 2
    context.close()
