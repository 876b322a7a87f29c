"""Rewinding on the run's page: what it would do is shown, and nothing else is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from agents.moves import rewind
from checkpoints.models import Checkpoint, Event, EventText, Run
from tests.agents.moves.moved_runs import after, before, edit
from tests.agents.pages.moves.sent_orders import ask, booked, hidden, member, order, page_of, panel_of, said, texts
from tests.factories import READER, ann, bob, make_policy, make_user, mira
from tests.factories.driven_runs import advance, advance_to_rest, decide, make_run, open_gate, state
from tests.factories.people import permissions
from tests.harness.browser_checks import is_live
from tests.harness.examples import first_alone
from tests.harness.racing_threads import race
from tests.harness.signed_in_clients import signed_in


def fresh(run: Run) -> Run:
    return Run.objects.get(pk=run.pk)


def test_a_checkpoint_offers_to_go_on_from_it_or_to_run_its_step_again(ledger: str) -> None:
    run = booked(ledger)
    page = panel_of(member(run), run, after(run, "book"))
    text = said(page)
    assert "After “Book”, keeping what it did" in text
    assert "Before “Book”, and run it again" in text
    assert f'value="{before(run, "book")}" data-way="before" checked' in page
    assert {f"seen.{after(run, 'book')}", f"seen.{before(run, 'book')}"} <= set(hidden(page))
    assert "Rewind, undoing" in text
    final = panel_of(member(run), run, after(run, "tell"))
    assert "After “Tell”" not in said(final)
    assert f'name="confirm.{before(run, "tell")}"' in final
    assert "cannot be undone and will happen once more, under a new key" in said(final)
    form = hidden(final) | {"to": before(run, "tell")}
    assert order(member(run), run, "rewinds", **form).status_code == 422, "not confirmed"
    at = after(run, "plan")
    typed = ask(member(run), run, "rewind", at=at, to=at, why="One more guest.")
    assert f'value="{at}" data-way="after" checked' in typed
    assert "<html" not in typed
    answer = member(run).post(f"/runs/{run.pk}/impacts/", {"kind": "rewind", "at": at, "to": at, "why": "Because."})
    whole = answer.content.decode()
    assert ("<html" in whole, "Because." in whole) == (True, True), "without a script it is a page of its own"
    refused: list[tuple[str, dict[str, Any]]]
    refused = [("rewinds", {"to": 99}), ("rewinds", {"to": "x"}), ("impacts", {"kind": "nothing"})]
    assert [order(member(run), run, noun, **form).status_code for noun, form in refused] == [404, 404, 400]


def test_it_is_done_as_shown_with_the_reason_kept_and_read(ledger: str) -> None:
    run = booked(ledger)
    client, to = member(run), before(run, "plan")
    form = hidden(panel_of(client, run, after(run, "plan")))
    why = "One more guest."
    form |= hidden(ask(client, run, "rewind", to=to, at=after(run, "plan"), why=why))
    answer = order(client, run, "rewinds", **form, to=to, why=why)
    assert (answer.status_code, answer["Location"]) == (302, f"/runs/{run.pk}/")
    made = Checkpoint.objects.get(run=run, kind="rewind")
    assert state(run)["feedback"][0]["text"] == why
    event = Event.objects.get(run_id=run.pk, kind="run.rewound")
    assert bytes(EventText.objects.get(event=event).text).decode() == why
    text = said(page_of(client, f"/runs/{run.pk}/"))
    assert f"{made.seq} Rewind to {to}" in text
    assert "by Ann Okafor: One more guest." in text
    assert "3 effects 2 to be settled, 1 cannot be undone" in text
    assert "Undo 2 effects now" in text


@pytest.mark.parametrize(("shown", "sent"), first_alone([("", "Shorter."), ("Shorter.", "")]))
def test_a_reason_that_changes_what_is_done_is_said_to_and_nothing_is_done(
    ledger: str, settings: Any, shown: str, sent: str
) -> None:
    settings.HOLDPOINT_TIME_SLICE = 0  # a step at a time
    run = advance_to_rest(make_run("letters", ledger=ledger))
    decide(run)
    while run.next_step != "send":
        run = advance(run)
    client, at, to = member(run), after(run, "draft"), before(run, "draft")
    form = hidden(panel_of(client, run, at)) | hidden(ask(client, run, "rewind", at=at, to=to, why=shown))
    answer = order(client, run, "rewinds", **form, to=to, why=sent)
    assert answer.status_code == 409
    page = answer.content.decode()
    assert "Your reason has changed what this would do" in said(page)
    assert "has changed since" not in said(page)
    assert Checkpoint.objects.filter(run=run, kind="rewind").count() == 0
    form |= hidden(page)
    assert order(client, run, "rewinds", **form, to=to, why=sent).status_code == 302


def test_who_may_only_look_sees_no_way_to_order_and_is_refused(ledger: str) -> None:
    run = booked(ledger)
    run.team.permissions.set(permissions(READER))
    client = signed_in(make_user("Rita Reader", run.team))
    page = page_of(client, f"/runs/{run.pk}/?at=2")
    assert "Rewind the run" not in page
    assert "Fork from here" not in page
    assert client.get(f"/runs/{run.pk}/checkpoints/1/edit/").status_code == 403
    assert order(client, run, "edits", at=1).status_code == 403
    assert order(client, run, "rewinds", to=1).status_code == 403
    assert client.post(f"/runs/{run.pk}/impacts/", {"kind": "rewind", "to": 1}).status_code == 403


def test_a_way_that_is_refused_says_so_before_it_is_ordered(ledger: str) -> None:
    run = booked(ledger)
    at = after(run, "pay")
    edit(run, 1, size=2)
    advance_to_rest(run)
    client = member(run)
    order(client, run, "settlements")
    advance_to_rest(run)
    page = panel_of(client, run, at)
    assert "but it was undone since" in said(page)
    assert f"seen.{at}" not in hidden(page)


def test_the_gate_that_closes_and_the_approval_that_lapses_are_named(ledger: str) -> None:
    run = advance_to_rest(make_run("booking", ledger=ledger))
    make_policy(run.team, name="default", quorum=2, version=7)
    run = advance_to_rest(make_run("booking", ledger=ledger, team=run.team))
    gate = open_gate(run)
    decide(run, by=mira(run.team))
    text = said(panel_of(member(run), run, after(run, "plan")))
    assert f"Withdraws gate {gate.pk}; the approval of Mira Sandoval lapses" in text


NewPage = Callable[..., Page]


def made(run: Run, kind: str) -> int:
    return Checkpoint.objects.filter(run=run, kind=kind).count()


def test_a_form_that_says_something_else_is_another_order_though_its_key_is_the_same(ledger: str) -> None:
    """Changed after Back and sent again it was taken for the first, and what was changed was lost without a word."""
    run = booked(ledger)
    client = member(run)
    page = page_of(client, f"/runs/{run.pk}/checkpoints/1/edit/")
    form = texts(page) | {"at": "1", "key": hidden(page)["key"]}
    for number, size in enumerate(("2", "3", "3"), 1):
        said = form | {"state/size": size}
        said |= {"seen": hidden(ask(client, run, "edit", **said))["seen"]}
        assert order(client, run, "edits", **said)["Location"] == f"/runs/{run.pk}/"
        assert made(run, "edit") == min(number, 2), "the same form is the same edit"


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
