"""Editing a checkpoint's state: a typed form of its fields, checked by the agent, shown before it is saved."""

from __future__ import annotations

import json
import re

from django.test import Client

from checkpoints.models import Checkpoint, Run
from checkpoints.values import artifacts
from tests.agents.moves.moved_runs import after
from tests.agents.pages.moves.sent_orders import ask, booked, hidden, member, order, page_of, said, texts
from tests.factories.driven_runs import state


def editor(run: Run, seq: int) -> str:
    return f"/runs/{run.pk}/checkpoints/{seq}/edit/"


def test_every_field_has_its_input_and_what_is_typed_is_shown_and_saved_as_shown(ledger: str) -> None:
    run = booked(ledger)
    client = member(run)
    page = page_of(client, editor(run, 1))
    found = texts(page)
    assert (found["state/size"], found["state/ledger"]) == ("1", ledger)
    assert {"state/offer", "state!order/feedback", "state/decision"} <= set(found)
    assert "size read by “Plan”" in said(page)
    assert "told not read by later steps" in said(page)
    assert list(found).index("state/size") < list(found).index("state/told")
    form = found | {"state/size": " 2 ", "at": "1", "why": "Two of them."}
    shown = ask(client, run, "edit", **form)
    for words in ("What you change", "If you change size at checkpoint 1", "Change the state"):
        assert words in said(shown)
    assert "<ins>" in shown
    assert "hx-swap-oob" in shown
    answer = order(client, run, "edits", **form, seen=hidden(shown)["seen"])
    assert (answer.status_code, answer["Location"]) == (302, f"/runs/{run.pk}/")
    assert (state(run)["size"], state(run)["ledger"]) == (2, ledger)
    made = Checkpoint.objects.get(run=run, kind="edit")
    text = said(page_of(client, f"/runs/{run.pk}/?at={made.seq}"))
    assert f"{made.seq} Edit edited by hand" in text
    assert "by Ann Okafor: Two of them." in text
    assert "Difference to 1" in text


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
    page = client.post(f"/runs/{run.pk}/forms/", form).content.decode()
    assert ("<html" in page, texts(page)["state!order/feedback"]) == (True, "/~new1")
    assert (texts(page)["state/size"], texts(page)["state/feedback/~new1/text"]) == ("3", "")
    assert Run.objects.get(pk=run.pk).status == "completed"
    assert client.post(f"/runs/{run.pk}/forms/", form | {"kind": "rewind"}).status_code == 400
    page = client.post(f"/runs/{run.pk}/impacts/", form | {"kind": "edit", "at": "1"}).content.decode()
    assert ("<html" in page, "seen" in hidden(page)) == (True, True), "without a script a button shows what it does"
    assert texts(page)["state/size"] == "3"


def test_markup_and_what_cannot_be_seen_in_a_value_are_text(ledger: str) -> None:
    run = booked(ledger, flag="</textarea><script>alert(1)</script>\u202egnp")
    page = page_of(member(run), editor(run, 1))
    assert "<script>alert" not in page
    assert "U+202E" in page
    assert page.count("\u202e") == 2, "in the input alone, and in what it is compared with"


def test_an_edit_of_nothing_or_where_the_run_ended_is_refused(ledger: str) -> None:
    run = booked(ledger)
    client, last = member(run), after(run, "tell")
    form = texts(page_of(client, editor(run, 1)))
    assert "Change a field" in said(ask(client, run, "edit", at=1, **form))
    answer = order(client, run, "edits", at=1, **form)
    assert (answer.status_code, "The edit changes nothing." in said(answer.content.decode())) == (409, True)
    assert "The run ended at this checkpoint. Edit an earlier one." in said(page_of(client, editor(run, last)))
    assert "ended at checkpoint" in said(ask(client, run, "edit", **(form | {"state/size": "2", "at": str(last)})))


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


def test_whoever_sends_a_form_signed_out_comes_back_to_a_page_of_this_site() -> None:
    for came_from in (
        "http://testserver/runs/7/?at=2",
        "http://elsewhere.example/runs/8/",
        "",
        "http://testserver:1/x",
    ):
        answer = Client().post("/runs/7/edits/", headers={"Referer": came_from})
        leads_to = "/runs/7/%3Fat%3D2" if came_from.endswith("at=2") else "/runs/7/edits/"
        assert answer.headers["Location"] == f"/accounts/login/?next={leads_to}"
    looked = Client().get("/runs/7/?at=2", headers={"Referer": "http://testserver/"})
    assert looked.headers["Location"] == "/accounts/login/?next=/runs/7/%3Fat%3D2"
