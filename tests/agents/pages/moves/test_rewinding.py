"""Rewinding on the run's page: what it would do is shown, and nothing else is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agents.moves import rewind
from checkpoints.models import Checkpoint, Event, EventText, Run
from tests.agents.moves.moved_runs import after, before, edit
from tests.agents.pages.moves.sent_orders import ask, booked, hidden, member, order, page_of, panel_of, said, texts
from tests.factories import READER, ann, bob, make_policy, make_user, mira
from tests.factories.driven_runs import advance, advance_to_rest, decide, make_run, open_gate, state
from tests.factories.people import permissions
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


def test_a_reason_that_changes_what_is_done_is_said_to_and_nothing_is_done(ledger: str, settings: Any) -> None:
    settings.HOLDPOINT_TIME_SLICE = 0  # a step at a time
    run = advance_to_rest(make_run("letters", ledger=ledger))
    decide(run)
    while run.next_step != "send":
        run = advance(run)
    client, at, to = member(run), after(run, "draft"), before(run, "draft")
    form = hidden(panel_of(client, run, at)) | hidden(ask(client, run, "rewind", at=at, to=to, why=""))
    answer = order(client, run, "rewinds", **form, to=to, why="Shorter.")
    assert answer.status_code == 409
    page = answer.content.decode()
    assert "Your reason has changed what this would do" in said(page)
    assert "has changed since" not in said(page)
    assert Checkpoint.objects.filter(run=run, kind="rewind").count() == 0
    form |= hidden(page)
    assert order(client, run, "rewinds", **form, to=to, why="Shorter.").status_code == 302


def test_who_may_only_look_sees_no_way_to_order_and_edits_nothing(ledger: str) -> None:
    run = booked(ledger)
    run.team.permissions.set(permissions(READER))
    client = signed_in(make_user("Rita Reader", run.team))
    page = page_of(client, f"/runs/{run.pk}/?at=2")
    assert [words for words in ("Rewind the run", "Fork from here", "Cancel the run") if words in page] == []
    assert client.get(f"/runs/{run.pk}/checkpoints/1/edit/").status_code == 403


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
