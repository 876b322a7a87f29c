"""Rewinds, edits and forks in a real browser: shown while they are typed, without a script, readable by everybody."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, Route, expect

from checkpoints.models import Checkpoint, Event, Run
from tests.agents.moves.moved_runs import after, before, edit
from tests.agents.pages.moves.sent_orders import booked
from tests.factories import ann, make_user
from tests.factories.driven_runs import advance_to_rest, decide, state
from tests.harness.browser_checks import check_each_look, is_live, watched
from tests.harness.examples import trying_all
from tests.harness.slow_parts import SlowParts

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


def lose(page: Page, address: str) -> None:
    """Let the next POST arrive there, and its answer get lost on the way."""

    def lost(route: Route) -> None:
        route.fetch(max_redirects=0)
        route.abort("connectionreset")

    page.route(address, lost, times=1)


def test_a_rewind_is_shown_chosen_and_done_once_though_its_answer_is_lost(new_page: NewPage, ledger: str) -> None:
    run = booked(ledger)
    at, to = after(run, "book"), before(run, "book")
    page = open_page(new_page, run, f"?at={at}")
    is_live(page)
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
    lose(page, "**/rewinds/")
    page.locator(COMMIT).click()
    note = page.get_by_role("alert")
    expect(note).to_contain_text("No answer from the server. We don't know if it arrived.")
    expect(page.locator("#timeline")).to_contain_text(f"to {to}")  # the page heard of it
    with page.expect_navigation():
        note.get_by_role("button", name="Try again").click()
    expect(page.locator("#refusal")).to_have_count(0)
    expect(page.locator("#timeline")).to_contain_text("by Ann Okafor: The wrong room.")
    assert Checkpoint.objects.filter(run=run, kind="rewind").count() == 1
    assert Event.objects.filter(kind="run.rewound", run_id=run.pk).count() == 1
    advance_to_rest(run)
    expect(page.locator("#run-head")).to_contain_text("Held at “Review”")
    decide(run)
    advance_to_rest(run)
    expect(page.locator("#timeline .cp[data-status=undone]")).to_have_count(2)
    expect(page.locator("#effects")).to_contain_text("undone")


def test_an_edit_shows_what_it_does_while_it_is_typed_and_waits_for_the_list_that_it_changes(
    new_page: NewPage, ledger: str
) -> None:
    """Sent before the server had drawn the list without the item that was taken out, the edit kept it."""
    said = [{"text": "One more.", "by": "Ann", "gate": 4}]
    run = booked(ledger, feedback=said)
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
    page.get_by_role("button", name="Add feedback").click()
    text = page.locator("[name='state/feedback/~new1/text']")
    expect(text).to_be_visible()
    expect(field).to_have_value("2")
    expect(page.locator("#edit-faults")).to_contain_text("Gate")
    text.fill("Two more.")
    page.locator("[name='state/feedback/~new1/by']").fill("Ann")
    page.locator("[name='state/feedback/~new1/gate']").fill("4")
    expect(page.locator("#edit-faults")).to_be_empty()
    page.locator(".editor", has=field).get_by_role("button", name="Reset").click()
    expect(field).to_have_value("1")
    expect(page.locator("#order-panel")).to_contain_text("If you change feedback at checkpoint 1")
    expect(page.locator("hp-order[data-stale]")).to_have_count(0)
    slow = SlowParts(page)
    page.locator('[data-change][value="state/feedback/0:remove"]').click()
    page.locator(COMMIT).click()
    expect(page.locator(".commit[aria-busy]")).to_have_count(1)
    slow.go_on()
    expect(page.locator("#timeline")).to_contain_text("edited by hand")
    assert state(run)["feedback"] == [{"text": "Two more.", "by": "Ann", "gate": 4}]
    assert state(run)["size"] == 1


@pytest.mark.examples
def test_the_pages_are_accessible_and_never_wider_than_the_screen(new_page: NewPage, ledger: str) -> None:
    run = booked(ledger)
    last = after(run, "tell")
    edit(run, 1, size=2)
    advance_to_rest(run)
    page = new_page(ann(run.team))
    root = f"/runs/{run.pk}/"
    said = watched(page)
    addresses = ["checkpoints/1/edit/", "checkpoints/1/fork/", f"comparisons/?a={last}&b={last + 2}"]
    for address in addresses if trying_all() else addresses[:1]:
        assert check_each_look(page, f"{root}{address}", said) == []
    page.goto(f"{root}?at={last}")
    open_panel(page)
    assert check_each_look(page, "", said) == []


WORDS = "Ask Mira before\nthis is paid."
PASSWORD = "correct horse"
LOOK = "htmx.trigger(document.querySelector('#timeline'), 'stale', {}, false)"


def end_session(page: Page) -> None:
    """As on a sign-out in another tab, or by its age: the cookie against forgery stays."""
    page.context.clear_cookies(name="sessionid")


def sign_in(page: Page, user: User) -> None:
    page.fill("[name=login]", user.username)
    page.fill("[name=password]", PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()


def test_what_is_typed_survives_the_end_of_the_session_but_not_for_somebody_else(
    new_page: NewPage, ledger: str
) -> None:
    """The page was loaded anew to say so, and what was typed was gone; or it was kept for another address."""
    run = booked(ledger)
    user, other = (make_user(name, run.team, password=PASSWORD) for name in ("Ann Okafor", "Bob Other"))
    page = new_page(user)
    page.goto(f"/runs/{run.pk}/")
    is_live(page)
    page.get_by_text("Rewind the run…").click()
    page.get_by_label("Why").fill("The wrong room.")
    expect(page).to_have_url(re.compile(r"\?at=\d+$"))
    page.fill("#note-text", WORDS)
    end_session(page)
    page.evaluate(LOOK)
    sign_in(page, user)
    expect(page.get_by_label("Why")).to_have_value("The wrong room.")
    expect(page.locator("#note-text")).to_have_value(WORDS)
    page.get_by_role("button", name="Add note", exact=True).click()
    expect(page.locator("#notes-list")).to_contain_text("Ask Mira before")
    expect(page.locator("#note-text")).to_have_value("")  # or the answer would empty it later
    page.fill("#note-text", WORDS)
    end_session(page)
    page.evaluate(LOOK)
    sign_in(page, other)
    is_live(page)
    expect(page.locator("#note-text")).to_have_value("")
    assert page.evaluate("Object.keys(sessionStorage)") == []
