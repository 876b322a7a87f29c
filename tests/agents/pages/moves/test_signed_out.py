"""A session that ends while somebody types: what was entered leads through the sign-in and stands there again."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Page, expect

from checkpoints.models import Checkpoint, Run
from checkpoints.runs import notes
from tests.agents.moves.moved_runs import after
from tests.agents.pages.stored_histories import held
from tests.factories import make_team, make_user
from tests.factories.driven_runs import state
from tests.harness.browser_checks import check, each_width, is_live, watched

from .sent_orders import booked

NewPage = Callable[..., Page]
WORDS = "Ask Mira before\nthis is paid."
PASSWORD = "correct horse"
COMMIT = ".commit:visible"
LOOK = "htmx.trigger(document.querySelector('#timeline'), 'stale', {}, false)"


def somebody(run: Run) -> User:
    return make_user("Ann Okafor", run.team, password=PASSWORD)


def opened(new_page: NewPage, run: Run, user: User, address: str = "", **options: object) -> Page:
    page = new_page(user, **options)
    page.goto(f"/runs/{run.pk}/{address}")
    if options.get("java_script_enabled", True):
        is_live(page)
    return page


def end_session(page: Page) -> None:
    """As on a sign-out in another tab, or by its age: the cookie against forgery stays."""
    page.context.clear_cookies(name="sessionid")


def sign_in(page: Page, user: User) -> None:
    page.fill("[name=login]", user.username)
    page.fill("[name=password]", PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()


def test_a_note_survives_the_look_that_finds_the_session_ended(new_page: NewPage, ledger: str) -> None:
    """The page was loaded anew to say so, and what was typed was gone."""
    run = booked(ledger)
    user = somebody(run)
    page = opened(new_page, run, user, "?at=2")
    page.fill("#note-text", WORDS)
    end_session(page)
    page.evaluate(LOOK)
    sign_in(page, user)
    page.wait_for_url(f"**/runs/{run.pk}/?at=2")
    expect(page.locator("#note-text")).to_have_value(WORDS)
    expect(page.locator("#note-text")).to_be_focused()
    page.get_by_role("button", name="Add note", exact=True).click()
    expect(page.locator("#notes-list")).to_contain_text("Ask Mira before")
    at = Checkpoint.objects.get(run=run, seq=2).pk
    assert [each.text for each in notes.standing(notes.of_checkpoint(at))] == [WORDS]


@pytest.mark.long
def test_a_note_that_is_sent_after_the_session_ended_is_there_to_be_sent_again(new_page: NewPage, ledger: str) -> None:
    run = booked(ledger)
    user = somebody(run)
    page = opened(new_page, run, user, "?at=2")
    page.fill("#note-text", WORDS)
    end_session(page)
    page.get_by_role("button", name="Add note", exact=True).click()
    sign_in(page, user)
    expect(page.locator("#note-text")).to_have_value(WORDS)
    page.reload()
    expect(page.locator("#note-text")).to_have_value(WORDS)


def test_a_rewind_comes_back_that_was_typed_where_the_address_named_no_checkpoint(
    new_page: NewPage, ledger: str
) -> None:
    """Typing puts the checkpoint into the address: what was entered was kept for the old one, and was gone."""
    run = booked(ledger)
    user = somebody(run)
    page = opened(new_page, run, user)
    page.get_by_text("Rewind the run…").click()
    page.get_by_label("Why").fill("The wrong room.")
    expect(page).to_have_url(re.compile(r"\?at=\d+$"))
    end_session(page)
    page.evaluate(LOOK)
    sign_in(page, user)
    expect(page.get_by_label("Why")).to_have_value("The wrong room.")


@pytest.mark.long
@each_width
def test_an_edit_with_a_list_that_grew_comes_back_as_it_was(new_page: NewPage, ledger: str, width: int) -> None:
    run = booked(ledger)
    user = somebody(run)
    page = opened(new_page, run, user, "checkpoints/1/edit/", viewport={"width": width, "height": 900})
    said = watched(page)
    page.locator("summary", has_text="feedback").click()
    page.get_by_role("button", name="Add feedback").click()
    page.locator("[name='state/feedback/~new1/text']").fill("Two more.")
    page.locator("[name='state/feedback/~new1/by']").fill("Ann")
    page.locator("[name='state/feedback/~new1/gate']").fill("4")
    page.get_by_label("Size").fill("3")
    page.get_by_label("Why").fill(WORDS)
    expect(page.locator("#order-panel")).to_contain_text("If you change 2 fields at checkpoint 1")
    expect(page.locator("hp-order[data-stale]")).to_have_count(0)
    end_session(page)
    page.locator(COMMIT).click()
    sign_in(page, user)
    page.wait_for_url("**/checkpoints/1/edit/")
    expect(page.locator("#order-panel")).to_contain_text("If you change 2 fields at checkpoint 1")
    expect(page.get_by_label("Size")).to_have_value("3")
    expect(page.get_by_label("Why")).to_have_value(WORDS)
    expect(page.locator("[name='state/feedback/~new1/text']")).to_have_value("Two more.")
    assert check(page, "", said) == []
    page.locator(COMMIT).click()
    expect(page.locator("#timeline")).to_contain_text("edited by hand")
    assert [each["text"] for each in state(run)["feedback"]] == ["Two more.", WORDS.replace("\n", "\r\n")]
    assert state(run)["size"] == 3


def test_a_fork_that_is_being_typed_comes_back(new_page: NewPage, ledger: str) -> None:
    run = booked(ledger)
    user = somebody(run)
    page = opened(new_page, run, user, "checkpoints/2/fork/")
    end_session(page)
    page.get_by_label("Title", exact=True).fill("For somebody else")  # what it would do is asked while it is typed
    sign_in(page, user)
    expect(page.get_by_label("Title", exact=True)).to_have_value("For somebody else")
    page.locator(COMMIT).click()
    expect(page.locator("h1")).to_have_text("For somebody else")


@pytest.mark.long
def test_a_rewind_and_a_note_of_one_page_come_back_together(new_page: NewPage, ledger: str) -> None:
    run = booked(ledger)
    user, at = somebody(run), after(run, "book")
    page = opened(new_page, run, user, f"?at={at}")
    page.fill("#note-text", WORDS)
    page.get_by_text("Rewind the run…").click()
    page.get_by_label("After “Book”, keeping what it did").check()
    page.get_by_label("Why").fill("The wrong room.")
    expect(page.locator("[data-stale]")).to_have_count(0)
    end_session(page)
    page.locator(COMMIT).click()
    sign_in(page, user)
    expect(page.get_by_label("Why")).to_have_value("The wrong room.")
    expect(page.get_by_label("After “Book”, keeping what it did")).to_be_checked()
    expect(page.locator("#note-text")).to_have_value(WORDS)


def test_somebody_else_who_signs_in_does_not_find_them(new_page: NewPage, ledger: str) -> None:
    run = booked(ledger)
    user, other = somebody(run), make_user("Bob Other", run.team, password=PASSWORD)
    page = opened(new_page, run, user, "?at=2")
    page.fill("#note-text", WORDS)
    end_session(page)
    page.evaluate(LOOK)
    sign_in(page, other)
    is_live(page)
    expect(page.locator("#note-text")).to_have_value("")
    assert page.evaluate("Object.keys(sessionStorage)") == []


@pytest.mark.long
def test_without_a_script_the_sign_in_leads_back_to_the_form(new_page: NewPage, ledger: str) -> None:
    run = booked(ledger)
    user = somebody(run)
    page = opened(new_page, run, user, "checkpoints/1/edit/", java_script_enabled=False)
    end_session(page)
    page.get_by_role("button", name="Show what this does").click()
    sign_in(page, user)
    page.wait_for_url("**/checkpoints/1/edit/")
    expect(page.get_by_label("Size")).to_be_visible()


@pytest.mark.parametrize(
    ("came_from", "leads_to"),
    [
        ("http://testserver/runs/7/?at=2", "/runs/7/%3Fat%3D2"),
        ("http://elsewhere.example/runs/8/", "/runs/7/edits/"),
        ("", "/runs/7/edits/"),
        ("http://testserver:1/x", "/runs/7/edits/"),
    ],
)
def test_whoever_sends_a_form_signed_out_comes_back_to_a_page_of_this_site(came_from: str, leads_to: str) -> None:
    answer = Client().post("/runs/7/edits/", headers={"Referer": came_from})
    assert answer.headers["Location"] == f"/accounts/login/?next={leads_to}"


def test_what_is_only_looked_at_is_come_back_to_as_it_was_asked_for() -> None:
    run = held(make_team()).run
    answer = Client().get(f"/runs/{run.pk}/?at=2", headers={"Referer": "http://testserver/"})
    assert answer.headers["Location"] == f"/accounts/login/?next=/runs/{run.pk}/%3Fat%3D2"
