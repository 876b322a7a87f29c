"""An order or a note whose answer was lost, or that was sent twice, counts once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from agents.moves import rewind
from checkpoints.models import Checkpoint, Event, Run
from checkpoints.runs import notes
from tests.agents.moves.moved_runs import after, before
from tests.factories import ann, bob
from tests.harness.browser_checks import is_live
from tests.harness.racing_threads import race

from .sent_orders import ask, booked, hidden, member, order, page_of, panel_of, texts

NewPage = Callable[..., Page]


def made(run: Run, kind: str) -> int:
    return Checkpoint.objects.filter(run=run, kind=kind).count()


def rewinding(run: Run, step: str) -> dict[str, Any]:
    """What the form of a rewind to before a step sends."""
    at, to = after(run, step), before(run, step)
    return hidden(panel_of(member(run), run, at)) | {"to": to}


def test_the_same_form_of_a_rewind_is_one_rewind(ledger: str) -> None:
    """A rewind whose answer was lost was done a second time when it was sent again: what it does was the same."""
    run = booked(ledger)
    client, form = member(run), rewinding(run, "plan")
    for _ in range(2):
        assert order(client, run, "rewinds", **form)["Location"] == f"/runs/{run.pk}/"
    assert made(run, "rewind") == 1
    assert order(client, run, "rewinds", **rewinding(run, "plan"))["Location"] == f"/runs/{run.pk}/"
    assert made(run, "rewind") == 2, "another form is another order"


def test_the_same_form_of_an_edit_is_one_edit(ledger: str) -> None:
    run = booked(ledger)
    client = member(run)
    page = page_of(client, f"/runs/{run.pk}/checkpoints/1/edit/")
    form = texts(page) | {"state/size": "2", "at": "1", "key": hidden(page)["key"]}
    form |= {"seen": hidden(ask(client, run, "edit", **form))["seen"]}
    for _ in range(2):
        assert order(client, run, "edits", **form)["Location"] == f"/runs/{run.pk}/"
    assert made(run, "edit") == 1


def test_a_form_that_says_something_else_is_another_order_though_its_key_is_the_same(ledger: str) -> None:
    """Changed after Back and sent again it was taken for the first, and what was changed was lost without a word."""
    run = booked(ledger)
    client = member(run)
    page = page_of(client, f"/runs/{run.pk}/checkpoints/1/edit/")
    form = texts(page) | {"at": "1", "key": hidden(page)["key"]}
    for number, size in enumerate(("2", "3"), 1):
        said = form | {"state/size": size}
        said |= {"seen": hidden(ask(client, run, "edit", **said))["seen"]}
        assert order(client, run, "edits", **said)["Location"] == f"/runs/{run.pk}/"
        assert made(run, "edit") == number


def test_the_same_form_sent_at_the_same_moment_is_one_rewind_and_anothers_key_is_theirs(ledger: str) -> None:
    run, to = booked(ledger), 1

    def go(by: Any) -> Callable[[], Any]:
        return lambda: rewind.rewind(Run.objects.get(pk=run.pk), to=to, by=by, key="k1").pk

    assert race([go(ann(run.team))] * 3) == [run.pk] * 3
    assert made(run, "rewind") == 1
    go(bob(run.team))()
    assert made(run, "rewind") == 2


@pytest.fixture
def run(ledger: str) -> Run:
    return booked(ledger)


def lose(page: Page, address: str) -> None:
    """Let the next POST arrive there, and its answer get lost on the way."""

    def lost(route: Route) -> None:
        route.fetch(max_redirects=0)
        route.abort("connectionreset")

    page.route(address, lost, times=1)


def test_a_rewind_whose_answer_is_lost_is_done_once_when_it_is_sent_again(new_page: NewPage, run: Run) -> None:
    page = new_page(ann(run.team))
    page.goto(f"/runs/{run.pk}/?at={after(run, 'plan')}")
    is_live(page)
    page.get_by_text("Rewind the run…").click()
    page.get_by_label("Before “Plan”").check()
    lose(page, "**/rewinds/")
    page.locator(".commit:visible").click()
    note = page.get_by_role("alert")
    expect(note).to_contain_text("No answer from the server. We don't know if it arrived.")
    expect(page.locator("#timeline")).to_contain_text(f"to {before(run, 'plan')}")  # the page heard of it
    assert made(run, "rewind") == 1
    with page.expect_navigation():
        note.get_by_role("button", name="Try again").click()
    expect(page.locator("#refusal")).to_have_count(0)
    assert made(run, "rewind") == 1
    assert Event.objects.filter(kind="run.rewound", run_id=run.pk).count() == 1


def test_a_note_whose_answer_is_lost_stands_once_when_it_is_sent_again(new_page: NewPage, run: Run) -> None:
    page = new_page(ann(run.team))
    page.goto(f"/runs/{run.pk}/?at=2")
    is_live(page)
    lose(page, "**/notes/")
    page.fill("#note-text", "Is this the right room?")
    page.locator("#note-it button").click()
    note = page.get_by_role("alert")
    expect(note).to_contain_text("No answer from the server. We don't know if it arrived.")
    expect(page.locator("#note-text")).to_have_value("Is this the right room?")
    expect(page.locator("#notes-list")).to_contain_text("Is this the right room?")  # the page heard of it
    note.get_by_role("button", name="Try again").click()
    expect(page.locator("#note-text")).to_have_value("")
    expect(note).to_have_count(0)
    assert Event.objects.filter(kind=notes.NOTED, run_id=run.pk).count() == 1
