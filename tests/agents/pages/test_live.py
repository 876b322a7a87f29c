"""The run's page in a real browser: live, by keyboard, without a script, and readable by everybody."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from checkpoints.models import Run
from tests.agents.pages.stored_histories import ORDER, PROPOSAL, begin, held, sent_back
from tests.factories import bob, make_card, make_gate, make_plan, make_run, make_spec, make_team
from tests.harness.browser_checks import check_each_look, each_look, watched

NewPage = Callable[..., Page]


def open_run(new_page: NewPage, user: Any, run: Run, query: str = "", **options: Any) -> Page:
    """The run's page, with its live feed on."""
    page = new_page(user, **options)
    page.goto(f"/runs/{run.pk}/{query}")
    expect(page.locator("hp-live")).to_have_attribute("data-live", "on")
    return page


def test_each_checkpoint_appears_as_it_is_saved_and_the_inspector_follows(new_page: NewPage) -> None:
    team = make_team()
    walk = begin(team)
    page = open_run(new_page, bob(team), walk.run)
    page.evaluate("window.stays = true")
    walk.save("find_order", {"order": ORDER}, "propose")
    expect(page.locator("#timeline")).to_contain_text("2 checkpoints")
    expect(page.locator("#cp-title")).to_have_text("Checkpoint 2, after “Find order”")
    walk.save("propose", {"proposal": PROPOSAL}, "review")
    walk.ask(card=make_card())
    expect(page.locator("#run-head")).to_contain_text("Held at “Review”")
    expect(page.locator(".cp[data-status=held]")).to_contain_text("Review")
    assert page.evaluate("window.stays") is True


@pytest.mark.long
def test_a_chosen_checkpoint_the_focus_and_an_opened_traceback_survive_what_happens(new_page: NewPage) -> None:
    team = make_team()
    walk = begin(team)
    walk.fail("find_order")
    walk.save("find_order", {"order": ORDER}, "propose", attempt=2)
    page = open_run(new_page, bob(team), walk.run)
    page.get_by_text("failed 1 time before").click()
    link = page.locator("#timeline a[data-pick]").first
    link.click()
    expect(page.locator("#cp-title")).to_have_text("Checkpoint 1, the input")
    assert page.url.endswith("?at=1")
    walk.save("propose", {"proposal": PROPOSAL}, "review")
    expect(page.locator("#timeline")).to_contain_text("3 checkpoints")
    expect(page.locator("#cp-title")).to_have_text("Checkpoint 1, the input")
    expect(page.locator(".cp[aria-current=true]")).to_contain_text("Input")
    expect(link).to_be_focused()
    expect(page.locator(".cp-failures pre")).to_be_visible()


@pytest.mark.long
def test_j_and_k_move_along_the_timeline_and_show_where_they_stop(new_page: NewPage) -> None:
    team = make_team()
    run = held(team).run
    page = open_run(new_page, bob(team), run)
    page.keyboard.press("k")
    expect(page.locator("#cp-title")).to_have_text("Checkpoint 2, after “Find order”")
    page.keyboard.press("k")
    expect(page.locator("#cp-title")).to_have_text("Checkpoint 1, the input")
    page.keyboard.press("j")
    expect(page.locator("#cp-title")).to_have_text("Checkpoint 2, after “Find order”")
    expect(page.locator("#timeline a[data-pick]").nth(1)).to_be_focused()


def test_the_whole_state_is_one_click_away_and_stays_chosen(new_page: NewPage) -> None:
    team = make_team()
    page = open_run(new_page, bob(team), held(team).run)
    page.get_by_role("link", name="Whole state").click()
    expect(page.locator("#inspect .tree")).to_contain_text("proposal")
    page.reload()
    expect(page.locator("#inspect .tree")).to_contain_text("proposal")


def test_verifying_happens_in_place(new_page: NewPage) -> None:
    team = make_team()
    page = open_run(new_page, bob(team), held(team).run)
    page.get_by_role("link", name="Verify the chain").click()
    expect(page.locator("#verify")).to_contain_text("chain verified")


@pytest.mark.long
def test_without_a_script_a_checkpoint_is_chosen_and_the_run_cancelled(new_page: NewPage) -> None:
    team = make_team()
    run = held(team).run
    page = new_page(bob(team), java_script_enabled=False)
    page.goto(f"/runs/{run.pk}/")
    page.locator("#timeline a[data-pick]").nth(1).click()
    assert page.locator("#cp-title").inner_text() == "Checkpoint 2, after “Find order”"
    page.get_by_text("Cancel the run…").click()
    page.locator("#cancel-reason").fill("Sent twice.")
    page.get_by_role("button", name=f"Cancel R-{run.pk}").click()
    assert "Cancelled by Bob Lindqvist" in page.locator("#run-head").inner_text()
    assert Run.objects.get(pk=run.pk).status == "cancelled"


def test_a_run_that_begins_appears_in_the_list(new_page: NewPage) -> None:
    team = make_team()
    page = new_page(bob(team))
    page.goto("/runs/")
    expect(page.locator("hp-live")).to_have_attribute("data-live", "on")
    run = held(team, title="Refund for Nils").run
    expect(page.locator(f"#run-{run.pk}")).to_contain_text("Held at “Review”")


@pytest.mark.examples
def test_the_pages_are_accessible_and_never_wider_than_the_screen(new_page: NewPage) -> None:
    team = make_team()
    reviewer = bob(team)
    walk = sent_back(team, by=reviewer)
    walk.fail("review")
    page = new_page(reviewer)
    run = walk.ask().run
    said = watched(page)
    for address in (f"/runs/{run.pk}/", f"/runs/{run.pk}/?view=state&at=6", f"/runs/{run.pk}/checkpoints/5/", "/runs/"):
        assert check_each_look(page, address, said) == []


@pytest.mark.long
@pytest.mark.examples
def test_what_a_cell_of_the_head_says_stays_within_it(new_page: NewPage) -> None:
    """ "Held at “Review the refund”" was printed over the agent's name."""
    team = make_team()
    titled = [replace(step, title="Review the refund") if step.name == "review" else step for step in make_spec().steps]
    gate = make_gate(run=make_run(team=team, plan=make_plan(replace(make_spec(), steps=tuple(titled)))))
    page = new_page(bob(team))
    page.goto(f"/runs/{gate.run_id}/")
    expect(page.locator("#run-head .cells .status")).to_contain_text("Held at “Review the refund”")
    beyond = """cells => cells.flatMap(cell => [...cell.querySelectorAll("dd *")].filter(each =>
        each.getBoundingClientRect().right > cell.getBoundingClientRect().right + 0.5).map(each => each.textContent))"""
    for _ in each_look(page):
        assert page.locator("#run-head .cells > div").evaluate_all(beyond) == []
