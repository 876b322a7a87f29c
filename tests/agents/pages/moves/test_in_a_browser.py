"""Rewinds, edits and forks in a real browser: shown while they are typed, without a script, readable by everybody."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from checkpoints.models import Checkpoint, Run
from tests.agents.moves.moved_runs import after, before, edit
from tests.factories import ann
from tests.factories.driven_runs import advance_to_rest, decide, state
from tests.harness.browser_checks import check_each_look, watched
from tests.harness.slow_parts import SlowParts

from .sent_orders import booked

NewPage = Callable[..., Page]
COMMIT = ".commit:visible"


def open_page(new_page: NewPage, run: Run, address: str = "", **options: object) -> Page:
    page = new_page(ann(run.team), **options)
    page.goto(f"/runs/{run.pk}/{address}")
    return page


def open_panel(page: Page) -> None:
    page.get_by_text("Rewind the run…").click()
    expect(page.locator("#rewind")).to_be_visible()
    expect(page.locator("[data-stale]")).to_have_count(0)  # while it is worked out anew, it is pale


def test_a_rewind_is_shown_chosen_and_done(new_page: NewPage, ledger: str) -> None:
    run = booked(ledger)
    at, to = after(run, "book"), before(run, "book")
    page = open_page(new_page, run, f"?at={at}")
    open_panel(page)
    expect(page.locator(".way:visible")).to_contain_text(f"If you rewind to checkpoint {to}")
    page.get_by_label("After “Book”, keeping what it did").check()
    expect(page.locator(".way:visible")).to_contain_text(f"If you rewind to checkpoint {at}")
    expect(page.locator(COMMIT)).to_have_count(1)
    page.get_by_label("Before “Book”, and run it again").check()
    with page.expect_response("**/impacts/") as asked:
        page.get_by_label("Why").fill("The wrong room.")
    assert asked.value.status == 200
    expect(page.get_by_label("Before “Book”, and run it again")).to_be_checked()
    expect(page.get_by_label("Why")).to_have_value("The wrong room.")
    expect(page.locator(COMMIT)).to_contain_text("Rewind, undoing")
    page.locator(COMMIT).click()
    expect(page.locator("#timeline")).to_contain_text(f"to {to}")
    expect(page.locator("#timeline")).to_contain_text("by Ann Okafor: The wrong room.")
    assert Checkpoint.objects.filter(run=run, kind="rewind").count() == 1
    advance_to_rest(run)
    expect(page.locator("#run-head")).to_contain_text("Held at “Review”")
    decide(run)
    advance_to_rest(run)
    expect(page.locator("#timeline .cp[data-status=undone]")).to_have_count(2)
    expect(page.locator("#effects")).to_contain_text("undone")


def test_an_edit_shows_what_it_does_while_it_is_typed(new_page: NewPage, ledger: str) -> None:
    run = booked(ledger)
    page = open_page(new_page, run, "checkpoints/1/edit/")
    expect(page.locator(COMMIT)).to_have_count(0)
    field = page.get_by_label("Size")
    field.fill("many")
    expect(page.locator(".editor[data-edited] .error:visible")).to_contain_text("Write a whole number.")
    expect(page.locator("#edit-faults a")).to_have_text("Size")
    field.fill("2")
    expect(page.locator("#order-panel")).to_contain_text("What you change")
    expect(page.locator(".editor .error:visible")).to_have_count(0)
    expect(field).to_be_focused()
    page.locator(COMMIT).click()
    expect(page.locator("#timeline")).to_contain_text("edited by hand")
    assert state(run)["size"] == 2


def test_a_list_grows_in_its_place_and_says_what_its_items_lack(new_page: NewPage, ledger: str) -> None:
    run = booked(ledger)
    page = open_page(new_page, run, "checkpoints/1/edit/")
    page.get_by_label("Size").fill("3")
    page.locator("summary", has_text="feedback").click()
    page.get_by_role("button", name="Add feedback").click()
    text = page.locator("[name='state/feedback/~new1/text']")
    expect(text).to_be_visible()
    expect(page.get_by_label("Size")).to_have_value("3")
    expect(page.locator("#edit-faults")).to_contain_text("Gate")
    text.fill("Two more.")
    page.locator("[name='state/feedback/~new1/by']").fill("Ann")
    page.locator("[name='state/feedback/~new1/gate']").fill("4")
    expect(page.locator("#edit-faults")).to_be_empty()
    page.locator(".editor", has=page.get_by_label("Size")).get_by_role("button", name="Reset").click()
    expect(page.get_by_label("Size")).to_have_value("1")
    expect(page.locator("#order-panel")).to_contain_text("If you change feedback at checkpoint 1")
    expect(page.locator("hp-order[data-stale]")).to_have_count(0)
    page.locator(COMMIT).click()
    expect(page.locator("#timeline")).to_contain_text("edited by hand")
    assert state(run)["feedback"] == [{"text": "Two more.", "by": "Ann", "gate": 4}]
    assert state(run)["size"] == 1


def test_an_edit_waits_for_the_item_that_is_being_taken_out(new_page: NewPage, ledger: str) -> None:
    """Sent before the server had drawn the list without it, the edit kept it."""
    said = [{"text": text, "by": "Ann", "gate": 4} for text in ("One more.", "Two more.")]
    run = booked(ledger, feedback=said)
    page = open_page(new_page, run, "checkpoints/1/edit/")
    page.get_by_label("Size").fill("3")
    expect(page.locator("#order-panel")).to_contain_text("If you change size at checkpoint 1")
    slow = SlowParts(page)
    page.locator('[data-change][value="state/feedback/0:remove"]').click()
    page.locator(COMMIT).click()
    expect(page.locator(".commit[aria-busy]")).to_have_count(1)
    slow.go_on()
    expect(page.locator("#timeline")).to_contain_text("edited by hand")
    assert state(run)["feedback"] == said[1:]
    assert state(run)["size"] == 3


def test_a_fork_is_made_and_its_page_opens(new_page: NewPage, ledger: str) -> None:
    run = booked(ledger)
    page = open_page(new_page, run, "?at=2")
    page.get_by_role("link", name="Fork from here…").click()
    page.get_by_label("Title", exact=True).fill("For somebody else")
    page.locator(COMMIT).click()
    expect(page.locator("h1")).to_have_text("For somebody else")
    expect(page.locator("#run-head")).to_contain_text(f"lineage: this run and R-{run.pk}")


@pytest.mark.long
def test_what_is_half_typed_stays_while_the_run_goes_on(new_page: NewPage, ledger: str) -> None:
    run = booked(ledger)
    edit(run, 1, size=2)
    advance_to_rest(run)
    page = open_page(new_page, run)
    expect(page.locator("hp-live")).to_have_attribute("data-live", "on")
    open_panel(page)
    page.get_by_label("Why").last.fill("Not yet sent")
    decide(run)
    advance_to_rest(run)
    expect(page.locator("#run-head")).to_contain_text("Completed")
    expect(page.get_by_label("Why").last).to_have_value("Not yet sent")
    expect(page.locator("#timeline")).to_contain_text("Tell")


@pytest.mark.long
def test_the_panel_stays_open_from_one_checkpoint_to_the_next(new_page: NewPage, ledger: str) -> None:
    run = booked(ledger)
    page = open_page(new_page, run)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/impacts/") else None)
    page.locator(f"#timeline a[href$='?at={after(run, 'book')}#inspect']").click()
    expect(page.locator("#cp-title")).to_contain_text("after “Book”")
    assert asked == []
    open_panel(page)
    page.locator(f"#timeline a[href$='?at={after(run, 'plan')}#inspect']").click()
    expect(page.get_by_label("After “Plan”, keeping what it wrote")).to_be_visible()
    assert len(asked) == 2


@pytest.mark.long
def test_without_a_script_an_edit_is_shown_and_then_sent(new_page: NewPage, ledger: str) -> None:
    run = booked(ledger)
    page = open_page(new_page, run, "checkpoints/1/edit/", java_script_enabled=False)
    page.locator("[name='state/size']").fill("2")
    page.locator("summary", has_text="feedback").click()
    page.get_by_role("button", name="Add feedback").click()
    expect(page.locator("[name='state/size']")).to_have_value("2")
    page.get_by_role("button", name="Remove Feedback 1").click()
    page.get_by_role("button", name="Show what this does").click()
    assert "What you change" in page.locator("#order-panel").inner_text()
    assert page.locator("[name='state/size']").input_value() == "2"
    page.get_by_role("button", name="Change the state").click()
    assert "edited by hand" in page.locator("#timeline").inner_text()


@pytest.mark.long
def test_without_a_script_a_rewind_shows_only_the_way_that_is_chosen(new_page: NewPage, ledger: str) -> None:
    run = booked(ledger)
    page = open_page(new_page, run, f"?at={after(run, 'book')}", java_script_enabled=False)
    page.get_by_text("Rewind the run…").click()
    page.get_by_role("button", name="Show what this does").click()
    expect(page.locator(".way:visible")).to_have_count(1)
    page.get_by_label("After “Book”, keeping").check()
    page.locator(COMMIT).click()
    expect(page.locator("#timeline")).to_contain_text(f"to {after(run, 'book')}")


@pytest.mark.examples
def test_the_pages_are_accessible_and_never_wider_than_the_screen(new_page: NewPage, ledger: str) -> None:
    run = booked(ledger)
    last = after(run, "tell")
    edit(run, 1, size=2)
    advance_to_rest(run)
    page = new_page(ann(run.team))
    root = f"/runs/{run.pk}/"
    said = watched(page)
    for address in (
        root,
        f"{root}?at={last}",
        f"{root}checkpoints/{last}/",
        f"{root}checkpoints/1/edit/",
        f"{root}checkpoints/1/fork/",
        f"{root}comparisons/?a={last}&b={last + 2}",
    ):
        assert check_each_look(page, address, said) == []
    page.goto(f"{root}?at={last}")
    open_panel(page)
    assert check_each_look(page, "", said) == []
