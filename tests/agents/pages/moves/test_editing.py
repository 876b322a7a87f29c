"""Editing a checkpoint's state: a typed form of its fields, checked by the agent, shown before it is saved."""

from __future__ import annotations

import json
import re

from checkpoints.models import Checkpoint, Run
from checkpoints.values import artifacts
from tests.agents.moves.moved_runs import after
from tests.agents.pages.moves.sent_orders import ask, booked, hidden, member, order, page_of, said, texts
from tests.factories import READER, make_user
from tests.factories.driven_runs import advance_to_rest, state
from tests.factories.people import permissions
from tests.harness.signed_in_clients import signed_in


def editor(run: Run, seq: int) -> str:
    return f"/runs/{run.pk}/checkpoints/{seq}/edit/"


def test_every_field_has_its_input_and_says_who_reads_it_from_here_on(ledger: str) -> None:
    run = booked(ledger)
    page = page_of(member(run), editor(run, 1))
    found = texts(page)
    assert (found["state/size"], found["state/ledger"]) == ("1", ledger)
    assert {"state/offer", "state!order/feedback", "state/decision"} <= set(found)
    assert "size read by “Plan”" in said(page)
    assert "told not read by later steps" in said(page)
    assert list(found).index("state/size") < list(found).index("state/told")


def test_what_an_edit_does_is_shown_with_what_was_changed(ledger: str) -> None:
    run = booked(ledger)
    client = member(run)
    form = texts(page_of(client, editor(run, 1))) | {"state/size": "2"}
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
    form = texts(page_of(client, editor(run, 1))) | {"state/size": " 2 ", "at": "1", "why": "Two of them."}
    form |= {"seen": hidden(ask(client, run, "edit", **form))["seen"]}
    answer = order(client, run, "edits", **form)
    assert (answer.status_code, answer["Location"]) == (302, f"/runs/{run.pk}/")
    assert state(run)["size"] == 2
    assert state(run)["ledger"] == ledger
    made = Checkpoint.objects.get(run=run, kind="edit")
    text = said(page_of(client, f"/runs/{run.pk}/?at={made.seq}"))
    assert f"{made.seq} Edit edited by hand" in text
    assert "by Ann Okafor: Two of them." in text
    assert "Difference to 1" in text


def test_what_the_agent_does_not_take_stands_beside_its_field_and_nothing_is_saved(ledger: str) -> None:
    run = booked(ledger)
    client = member(run)
    form = texts(page_of(client, editor(run, 1))) | {"at": "1", "why": "Because.", "state/size": "many"}
    page = ask(client, run, "edit", **form)
    assert "Write a whole number." in said(page)
    assert "Change the state" not in said(page)
    answer = order(client, run, "edits", **form)
    kept = answer.content.decode()
    assert answer.status_code == 422
    assert texts(kept) == {name: text for name, text in form.items() if name.startswith("state")}
    assert "Because." in kept
    assert 'aria-invalid="true"' in kept
    assert re.search(r'data-fault="(f-state-size-\w+)"', kept)
    assert Run.objects.get(pk=run.pk).status == "completed"


def test_what_the_agents_own_model_refuses_is_said_at_its_place_in_a_list(ledger: str) -> None:
    """The form knows nothing of what a model holds beyond its schema: the item lacks what the model wants."""
    run = booked(ledger)
    client = member(run)
    form = texts(page_of(client, editor(run, 1))) | {"at": "1", "state!order/feedback": "/~new1"}
    form |= {"state/feedback/~new1/text": "Two.", "state/feedback/~new1/by": "Ann", "state/feedback/~new1/gate": ""}
    answer = order(client, run, "edits", **form)
    page = answer.content.decode()
    assert answer.status_code == 422
    assert texts(page)["state/feedback/~new1/text"] == "Two."
    assert re.search(r'data-fault="f-state-feedback--new1-gate-\w+"', page)
    assert re.search(r'id="f-state-feedback--new1-gate-\w+-error">', page), "the error beside it is hidden"
    form |= {"state/feedback/~new1/gate": "7"}
    form |= {"seen": hidden(ask(client, run, "edit", **form))["seen"]}
    assert order(client, run, "edits", **form).status_code == 302
    assert state(run)["feedback"][0] == {"text": "Two.", "by": "Ann", "gate": 7}


def test_a_list_grows_by_a_button_and_what_was_typed_beside_it_stays(ledger: str) -> None:
    run = booked(ledger)
    client = member(run)
    form = hidden(page_of(client, editor(run, 1))) | texts(page_of(client, editor(run, 1)))
    form |= {"state/size": "3", "change": "state/feedback:add"}
    for headers in ({}, {"X-Fragment": "form"}):
        answer = client.post(f"/runs/{run.pk}/forms/", form, headers=headers)
        page = answer.content.decode()
        assert answer.status_code == 200
        assert ("<html" in page) is (not headers)
        assert texts(page)["state!order/feedback"] == "/~new1"
        assert texts(page)["state/size"] == "3"
        assert "state/feedback/~new1/text" in texts(page)
    assert Run.objects.get(pk=run.pk).status == "completed"
    assert client.post(f"/runs/{run.pk}/forms/", form | {"kind": "rewind"}).status_code == 400


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
    form = texts(page_of(client, editor(run, 1))) | {"state/size": "2", "at": "1"}
    seen = hidden(ask(client, run, "edit", **form))["seen"]
    assert order(client, run, "edits", **form, seen=seen).status_code == 302
    advance_to_rest(run)
    answer = order(client, run, "edits", **form, seen=seen)
    assert answer.status_code == 409
    assert hidden(answer.content.decode())["seen"] != seen
    assert texts(answer.content.decode())["state/size"] == "2"


def test_without_a_script_a_button_shows_what_the_edit_does(ledger: str) -> None:
    run = booked(ledger)
    client = member(run)
    assert "Show what this does" in page_of(client, editor(run, 1))
    form = texts(page_of(client, editor(run, 1))) | {"state/size": "2", "at": "1", "kind": "edit"}
    answer = client.post(f"/runs/{run.pk}/impacts/", form)
    page = answer.content.decode()
    assert "<html" in page
    assert texts(page)["state/size"] == "2"
    assert "seen" in hidden(page)


def test_markup_and_what_cannot_be_seen_in_a_value_are_text(ledger: str) -> None:
    run = booked(ledger, flag="</textarea><script>alert(1)</script>\u202egnp")
    page = page_of(member(run), editor(run, 1))
    assert "<script>alert" not in page
    assert "U+202E" in page
    assert page.count("\u202e") == 2, "in the input alone, and in what it is compared with"


def test_who_may_only_look_gets_no_editor(ledger: str) -> None:
    run = booked(ledger)
    run.team.permissions.set(permissions(READER))
    client = signed_in(make_user("Rita Reader", run.team))
    assert client.get(editor(run, 1)).status_code == 403
    assert order(client, run, "edits", at=1).status_code == 403


def test_a_checkpoint_at_which_the_run_ended_says_so(ledger: str) -> None:
    run = booked(ledger)
    client, last = member(run), after(run, "tell")
    assert "The run ended at this checkpoint. Edit an earlier one." in said(page_of(client, editor(run, last)))
    form = texts(page_of(client, editor(run, last))) | {"state/size": "2", "at": str(last)}
    assert "ended at checkpoint" in said(ask(client, run, "edit", **form))


def test_an_edit_and_a_fork_name_no_file_of_another_run(ledger: str) -> None:
    """Whoever knew a file's digest wrote it into a state of their own, and a gate that shows that handed it out."""
    run = booked(ledger)
    client = member(run)
    scan = {"state/decision": json.dumps({"scan": artifacts.keep(b"theirs")})}
    for verb, at in (("edits", "1"), ("forks", "1")):
        answer = order(client, run, verb, at=at, **scan)
        assert answer.status_code == 422
        assert "is a file that this run's team does not have" in said(answer.content.decode())
    assert Checkpoint.objects.filter(run__lineage=run.pk, kind="fork").count() == 0
    assert Checkpoint.objects.filter(run=run, kind="edit").count() == 0
