"""Editing a checkpoint's state: a text for each field, checked by the agent, shown before it is saved."""

from __future__ import annotations

import json

from checkpoints import artifacts
from checkpoints.models import Checkpoint, Run
from tests.agents.driving import advance_to_rest, state
from tests.factories import READER, make_user
from tests.factories.people import permissions
from tests.pages.clients import signed_in
from tests.rewinds.moving import after
from tests.run_pages.orders.forms import ask, booked, hidden, member, order, page_of, said, texts


def editor(run: Run, seq: int) -> str:
    return f"/runs/{run.pk}/checkpoints/{seq}/edit/"


def test_every_field_has_a_text_and_says_who_reads_it_from_here_on(ledger: str) -> None:
    run = booked(ledger)
    page = page_of(member(run), editor(run, 1))
    found = texts(page)
    assert json.loads(found["field.size"]) == 1
    assert {"field.ledger", "field.offer", "field.feedback"} <= set(found)
    assert "size read by plan" in said(page)
    assert "told not read from here on" in said(page)
    assert list(found).index("field.size") < list(found).index("field.told")


def test_what_an_edit_does_is_shown_with_what_was_changed(ledger: str) -> None:
    run = booked(ledger)
    client = member(run)
    form = texts(page_of(client, editor(run, 1))) | {"field.size": "2"}
    page = ask(client, run, "edit", at=1, **form)
    assert "What you change" in said(page)
    assert "<ins>" in page
    assert "If you change size at checkpoint 1" in said(page)
    assert 'name="seen"' in page
    assert "Change the state" in said(page)
    assert "hx-swap-oob" in page


def test_it_is_saved_as_shown_and_only_what_differs_is_changed(ledger: str) -> None:
    run = booked(ledger)
    client = member(run)
    form = texts(page_of(client, editor(run, 1))) | {"field.size": " 2 ", "at": "1", "why": "Two of them."}
    form |= {"seen": hidden(ask(client, run, "edit", **form))["seen"]}
    answer = order(client, run, "edits", **form)
    assert (answer.status_code, answer["Location"]) == (302, f"/runs/{run.pk}/")
    assert state(run)["size"] == 2
    assert state(run)["ledger"] == ledger
    made = Checkpoint.objects.get(run=run, kind="edit")
    text = said(page_of(client, f"/runs/{run.pk}/?at={made.seq}"))
    assert f"{made.seq} edit edited by hand" in text
    assert "by Ann Okafor: Two of them." in text
    assert "Difference to 1" in text


def test_what_the_agent_does_not_take_stands_beside_its_field_and_nothing_is_saved(ledger: str) -> None:
    run = booked(ledger)
    client = member(run)
    form = texts(page_of(client, editor(run, 1))) | {"field.size": '"many"', "field.offer": "{", "at": "1"}
    page = ask(client, run, "edit", **form)
    assert "is not JSON" in said(page)
    form["field.offer"] = "0"
    page = ask(client, run, "edit", **form)
    assert "Input should be a valid integer" in said(page)
    assert "Change the state" not in said(page)
    answer = order(client, run, "edits", **form)
    assert answer.status_code == 422
    kept = answer.content.decode()
    assert texts(kept)["field.size"] == '"many"'
    assert 'aria-invalid="true"' in kept
    assert "Input should be a valid integer" in said(kept)
    assert Run.objects.get(pk=run.pk).status == "completed"


def test_an_edit_of_nothing_is_refused(ledger: str) -> None:
    run = booked(ledger)
    client = member(run)
    form = texts(page_of(client, editor(run, 1)))
    assert "Change a field" in said(ask(client, run, "edit", at=1, **form))
    answer = order(client, run, "edits", at=1, **form)
    assert answer.status_code == 409
    assert "The edit changes nothing." in said(answer.content.decode())


def test_what_was_shown_has_to_be_what_happens(ledger: str) -> None:
    run = booked(ledger)
    client = member(run)
    form = texts(page_of(client, editor(run, 1))) | {"field.size": "2", "at": "1"}
    seen = hidden(ask(client, run, "edit", **form))["seen"]
    assert order(client, run, "edits", **form, seen=seen).status_code == 302
    advance_to_rest(run)
    answer = order(client, run, "edits", **form, seen=seen)
    assert answer.status_code == 409
    assert hidden(answer.content.decode())["seen"] != seen
    assert texts(answer.content.decode())["field.size"] == "2"


def test_without_a_script_a_button_shows_what_the_edit_does(ledger: str) -> None:
    run = booked(ledger)
    client = member(run)
    assert "Show what this does" in page_of(client, editor(run, 1))
    form = texts(page_of(client, editor(run, 1))) | {"field.size": "2", "at": "1", "kind": "edit"}
    answer = client.post(f"/runs/{run.pk}/impacts/", form)
    page = answer.content.decode()
    assert "<html" in page
    assert texts(page)["field.size"] == "2"
    assert "seen" in hidden(page)


def test_markup_and_what_cannot_be_seen_in_a_value_are_text(ledger: str) -> None:
    run = booked(ledger, flag="</textarea><script>alert(1)</script>\u202egnp")
    page = page_of(member(run), editor(run, 1))
    assert "<script>alert" not in page
    assert "\\u202e" in texts(page)["field.flag"]
    assert "\u202e" not in page


def test_who_may_only_look_gets_no_editor(ledger: str) -> None:
    run = booked(ledger)
    run.team.permissions.set(permissions(READER))
    client = signed_in(make_user("Rita Reader", run.team))
    assert client.get(editor(run, 1)).status_code == 403
    assert order(client, run, "edits", at=1).status_code == 403


def test_a_checkpoint_at_which_the_run_ended_says_so(ledger: str) -> None:
    run = booked(ledger)
    client, last = member(run), after(run, "tell")
    assert "The run had ended at this checkpoint" in said(page_of(client, editor(run, last)))
    form = texts(page_of(client, editor(run, last))) | {"field.size": "2", "at": str(last)}
    assert "had ended at checkpoint" in said(ask(client, run, "edit", **form))


def test_an_edit_and_a_fork_name_no_file_of_another_run(ledger: str) -> None:
    """Whoever knew a file's digest wrote it into a state of their own, and a gate that shows that handed it out."""
    run = booked(ledger)
    client = member(run)
    scan = {"field.decision": json.dumps({"scan": artifacts.keep(b"theirs")})}
    for verb, at in (("edits", "1"), ("forks", "1")):
        answer = order(client, run, verb, at=at, **scan)
        assert answer.status_code == 422
        assert "a file of another run" in said(answer.content.decode())
    assert Checkpoint.objects.filter(run__lineage=run.pk, kind="fork").count() == 0
    assert Checkpoint.objects.filter(run=run, kind="edit").count() == 0
