"""Rewinds, edits and forks in a real browser: shown while they are typed, without a script, readable by everybody."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Page, expect

from checkpoints.models import Checkpoint, Run
from checkpoints.runs import notes
from tests.agents.moves.moved_runs import after, before, edit
from tests.agents.pages.moves.sent_orders import booked
from tests.agents.pages.stored_histories import held
from tests.factories import ann, make_team, make_user
from tests.factories.driven_runs import advance_to_rest, decide, state
from tests.harness.browser_checks import check, check_each_look, each_width, is_live, watched
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


WORDS = "Ask Mira before\nthis is paid."
PASSWORD = "correct horse"
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
