"""Rewinding on the run's page: what it would do is shown, and nothing else is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from agents.definition import registry
from agents.models import Effect
from agents.moves import rewind
from checkpoints.models import Checkpoint, Event, EventText, Run
from checkpoints.runs import notes
from tests.agents.moves.moved_runs import after, before, edit
from tests.agents.pages.moves.sent_orders import ask, booked, hidden, member, order, page_of, panel_of, said, texts
from tests.factories import READER, ann, bob, make_policy, make_user, mira
from tests.factories.driven_runs import advance_to_rest, decide, make_run, open_gate, state
from tests.factories.people import permissions
from tests.harness.browser_checks import is_live
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


def test_the_last_checkpoint_offers_only_to_run_its_step_again_and_asks_to_confirm_what_is_final(ledger: str) -> None:
    run = booked(ledger)
    page = panel_of(member(run), run, after(run, "tell"))
    assert "After “Tell”" not in said(page)
    assert f'name="confirm.{before(run, "tell")}"' in page
    assert "cannot be undone and will happen once more, under a new key" in said(page)


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


def test_typing_a_reason_shows_what_it_changes_before_it_is_sent(ledger: str) -> None:
    run = booked(ledger)
    client, at = member(run), after(run, "plan")
    without = hidden(ask(client, run, "rewind", at=at, to=at))
    with_words = hidden(ask(client, run, "rewind", at=at, to=at, why="One more guest."))
    assert without.keys() == with_words.keys()
    page = ask(client, run, "rewind", at=at, to=at)
    assert f'value="{at}" data-way="after" checked' in page
    assert "<html" not in page


@pytest.fixture
def reports(settings: Any) -> None:
    settings.HOLDPOINT_AGENTS = ["tests.agents.pages.moves.reason_agents"]
    registry.forget()


@pytest.mark.usefixtures("reports")
def test_a_reason_that_changes_only_why_a_step_runs_need_not_have_been_shown(ledger: str) -> None:
    """Pressed within half a second of the last letter, it was refused as if the run had moved on."""
    run = advance_to_rest(make_run("report", ledger=ledger, missing=f"{ledger}.file"))
    client, at = member(run), after(run, "gather")
    form = hidden(panel_of(client, run, at)) | {"to": before(run, "gather")}
    shown = hidden(ask(client, run, "rewind", at=at, to=form["to"], why="It is there now."))
    assert shown[f"seen.{form['to']}"] != form[f"seen.{form['to']}"]
    assert order(client, run, "rewinds", **form, why="It is there now.").status_code == 302
    assert Checkpoint.objects.filter(run=run, kind="rewind").count() == 1


@pytest.mark.usefixtures("reports")
@pytest.mark.parametrize(("shown", "sent"), [("", "Shorter."), ("Shorter.", "")])
def test_a_reason_that_changes_what_is_done_is_said_to_and_nothing_is_done(ledger: str, shown: str, sent: str) -> None:
    run = advance_to_rest(make_run("report", ledger=ledger))
    client, at, to = member(run), after(run, "gather"), before(run, "gather")
    form = hidden(panel_of(client, run, at)) | hidden(ask(client, run, "rewind", at=at, to=to, why=shown))
    answer = order(client, run, "rewinds", **form, to=to, why=sent)
    assert answer.status_code == 409
    page = answer.content.decode()
    assert "Your reason has changed what this would do" in said(page)
    assert "has changed since" not in said(page)
    assert Checkpoint.objects.filter(run=run, kind="rewind").count() == 0
    form |= hidden(page)
    assert order(client, run, "rewinds", **form, to=to, why=sent).status_code == 302


def test_what_has_changed_since_it_was_shown_is_shown_anew_and_nothing_is_done(ledger: str) -> None:
    run = booked(ledger)
    client, to = member(run), before(run, "plan")
    form = hidden(panel_of(client, run, after(run, "plan")))
    edit(run, to, size=3)
    advance_to_rest(run)
    decide(run)
    advance_to_rest(run)
    seq = fresh(run).seq
    answer = order(client, run, "rewinds", **form, to=to, why="")
    assert answer.status_code == 409
    page = answer.content.decode()
    assert "The run has changed since you looked" in said(page)
    assert hidden(page)[f"seen.{to}"] != form[f"seen.{to}"]
    assert (fresh(run).seq, fresh(run).status) == (seq, "completed")


def test_what_cannot_be_undone_is_done_once_more_only_where_that_is_confirmed(ledger: str) -> None:
    run = booked(ledger)
    client, at, to = member(run), after(run, "tell"), before(run, "tell")
    form = hidden(panel_of(client, run, at)) | {"to": to, "why": "They did not hear."}
    answer = order(client, run, "rewinds", **form)
    page = answer.content.decode()
    assert answer.status_code in (409, 422)
    assert "They did not hear." in page
    form |= hidden(page)
    assert order(client, run, "rewinds", **form).status_code == 422
    assert fresh(run).status == "completed"
    assert order(client, run, "rewinds", **form, **{f"confirm.{to}": "yes"}).status_code == 302
    advance_to_rest(run)
    decide(run)
    advance_to_rest(run)
    told = Effect.objects.filter(run=run, step="tell", undoes=None).order_by("pk")
    assert [(row.status, row.generation) for row in told] == [("kept", 0), ("done", 1)]


def test_who_may_only_look_sees_no_way_to_order_and_is_refused(ledger: str) -> None:
    run = booked(ledger)
    run.team.permissions.set(permissions(READER))
    client = signed_in(make_user("Rita Reader", run.team))
    page = page_of(client, f"/runs/{run.pk}/?at=2")
    assert "Rewind the run" not in page
    assert "Fork from here" not in page
    assert order(client, run, "rewinds", to=1).status_code == 403
    assert client.post(f"/runs/{run.pk}/impacts/", {"kind": "rewind", "to": 1}).status_code == 403


def test_a_page_that_follows_a_moving_head_foretells_nothing_until_somebody_stays(ledger: str) -> None:
    run = booked(ledger)
    Run.objects.filter(pk=run.pk).update(status="running")
    client = member(run)
    page = page_of(client, f"/runs/{run.pk}/")
    assert 'id="rewind-ask"' not in page
    assert f"Select checkpoint {fresh(run).seq}" in said(page)
    assert 'id="rewind-ask"' in page_of(client, f"/runs/{run.pk}/?at=3")


def test_without_a_script_the_impact_is_a_page_of_its_own(ledger: str) -> None:
    run = booked(ledger)
    at = after(run, "plan")
    answer = member(run).post(f"/runs/{run.pk}/impacts/", {"kind": "rewind", "at": at, "to": at, "why": "Because."})
    assert answer.status_code == 200
    assert "<html" in answer.content.decode()
    assert "Because." in answer.content.decode()


def test_a_checkpoint_that_is_not_there_is_not_found(ledger: str) -> None:
    run = booked(ledger)
    assert order(member(run), run, "rewinds", to=99).status_code == 404
    assert order(member(run), run, "rewinds", to="x").status_code == 404
    assert order(member(run), run, "impacts", kind="nothing").status_code == 400


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
