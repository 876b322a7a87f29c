"""The run's page in a real browser: live, by keyboard, without a script, and readable by everybody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db.models.functions import Now
from playwright.sync_api import Page, expect

from checkpoints.models import Run
from tests.agents.pages.stored_histories import ORDER, PROPOSAL, begin, sent_back
from tests.factories import bob, make_card, make_run, make_team
from tests.harness.browser_checks import check_each_look, watched

NewPage = Callable[..., Page]


def open_run(new_page: NewPage, user: Any, run: Run, query: str = "", **options: Any) -> Page:
    """The run's page, with its live feed on."""
    page = new_page(user, **options)
    page.goto(f"/runs/{run.pk}/{query}")
    expect(page.locator("hp-live")).to_have_attribute("data-live", "on")
    return page


def test_each_checkpoint_appears_as_it_is_saved_and_the_inspector_follows(new_page: NewPage) -> None:
    team = make_team()
    page = new_page(bob(team))
    page.goto("/runs/")
    expect(page.locator("hp-live")).to_have_attribute("data-live", "on")
    walk = begin(team)
    expect(page.locator(f"#run-{walk.run.pk}")).to_contain_text("Running")
    page.goto(f"/runs/{walk.run.pk}/")
    expect(page.locator("hp-live")).to_have_attribute("data-live", "on")
    page.evaluate("window.stays = true")
    walk.save("find_order", {"order": ORDER}, "propose")
    expect(page.locator("#timeline")).to_contain_text("2 checkpoints")
    expect(page.locator("#cp-title")).to_have_text("Checkpoint 2, after “Find order”")
    walk.save("propose", {"proposal": PROPOSAL}, "review")
    walk.ask(card=make_card())
    expect(page.locator("#run-head")).to_contain_text("Held at “Review”")
    expect(page.locator(".cp[data-status=held]")).to_contain_text("Review")
    page.keyboard.press("k")
    expect(page.locator("#cp-title")).to_have_text("Checkpoint 2, after “Find order”")
    page.keyboard.press("j")
    expect(page.locator("#cp-title")).to_have_text("Checkpoint 3, after “Propose”")
    page.get_by_role("link", name="Whole state").click()
    expect(page.locator("#inspect .tree")).to_contain_text("proposal")
    page.get_by_role("link", name="Verify the chain").click()
    expect(page.locator("#verify")).to_contain_text("chain verified")
    assert page.evaluate("window.stays") is True
    page.reload()
    expect(page.locator("#inspect .tree")).to_contain_text("proposal")


@pytest.mark.examples
def test_the_pages_are_accessible_and_never_wider_than_the_screen(new_page: NewPage) -> None:
    team = make_team()
    reviewer = bob(team)
    walk = sent_back(team, by=reviewer)
    walk.fail("review")
    page = new_page(reviewer)
    run = walk.ask().run
    for status in ("completed", "failed", "cancelled"):
        ended = make_run(team=team, plan=run.plan)
        Run.objects.filter(pk=ended.pk).update(status=status, finished_at=Now())
    said = watched(page)
    for address in (
        f"/runs/{run.pk}/", f"/runs/{run.pk}/?view=state&at=6", f"/runs/{run.pk}/checkpoints/5/", "/runs/",
        f"/runs/{run.pk}/events/?family=saves&before=3", f"/agents/{run.plan.agent}/",
    ):  # fmt: skip
        assert check_each_look(page, address, said) == []
    expect(page.locator(".meter rect[data-status]")).to_have_count(3)
