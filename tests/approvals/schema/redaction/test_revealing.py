"""Secrets where people touch them: revealed with an event, given to nobody else, and true under every edit."""

from __future__ import annotations

import html
import json
import re
from typing import Any
from unittest.mock import patch as broken

import pytest
from django.contrib.auth.models import User

from approvals.models import Draft, Gate
from approvals.schema.redact import placeholder_for
from checkpoints import store
from checkpoints.events import event_log as events
from checkpoints.models import Event, Run
from tests.agents.pages.moves.sent_orders import hidden, texts
from tests.approvals.schema.redaction.vault_agent import KEY, SECRETS, SEED, TOKEN
from tests.approvals.schema.redaction.vault_runs import make_people, make_run, member
from tests.factories import eve, make_policy, make_user
from tests.factories.driven_runs import advance_to_rest, open_gate
from tests.factories.driven_runs import decide as decide_run
from tests.factories.driven_runs import make_run as started
from tests.factories.events import data_of
from tests.harness.signed_in_clients import form_of, post, signed_in

GIVEN = "given-5b1e77aa"
APPROVE = {"verdict": "approve"}
STRAY = {"op": "copy", "from": "/token", "path": "/note"}


@pytest.fixture
def gate(ledger: str) -> Gate:
    return open_gate(make_run(make_people(), ledger))


def reveal(person: User, gate: Gate, at: str, *, of_run: bool = False, **headers: str) -> Any:
    address = f"/runs/{gate.run_id}/checkpoints/2/reveals/" if of_run else f"/gates/{gate.pk}/reveals/"
    return signed_in(person).post(address, {"at": at}, headers=headers)


def told(gate: Gate) -> list[tuple[str, str, Any]]:
    found = Event.objects.filter(kind="secret.revealed", run_id=gate.run_id).order_by("pk")
    return [(each.subject, each.actor, data_of(each)) for each in found]


def test_it_is_shown_to_whoever_may_and_the_event_tells_where(gate: Gate) -> None:
    ann = member(gate.team, reveals=True)
    answer = reveal(ann, gate, "/accounts/0/key")
    assert (answer.status_code, KEY in answer.content.decode()) == (200, True)
    assert "no-store" in answer["Cache-Control"]
    part = reveal(ann, gate, "/payment/token", of_run=True, **{"HX-Request": "true"})
    assert part.content.decode().count(TOKEN) == 1
    assert "<html" not in part.content.decode()
    assert told(gate) == [
        (gate.subject, f"user:{ann.pk}", {"pointer": "/accounts/0/key", "seq": 2, "proposal": 1}),
        (f"run:{gate.run_id}", f"user:{ann.pk}", {"pointer": "/payment/token", "seq": 2}),
    ]


def test_whoever_decides_may_not_see_it_without_the_permission(gate: Gate) -> None:
    for of_run in (False, True):
        answer = reveal(member(gate.team), gate, "/token", of_run=of_run)
        assert (answer.status_code, TOKEN in answer.content.decode()) == (403, False)
        assert "the permission “see secrets of the team" in answer.content.decode()
        assert reveal(eve(), gate, "/token", of_run=of_run).status_code == 404
    assert signed_in(member(gate.team, reveals=True)).get(f"/gates/{gate.pk}/reveals/").status_code == 405
    assert told(gate) == []


def test_nothing_but_a_secret_is_revealed_nor_one_without_its_event(gate: Gate) -> None:
    ann = member(gate.team, reveals=True)
    for at in ("", "/note", "/accounts", "/nowhere", "token", "/session", "/token/0"):
        for of_run in (False, True):
            assert reveal(ann, gate, at, of_run=of_run).status_code == 404, at
    with broken.object(events, "append_events", side_effect=RuntimeError("no event")), pytest.raises(RuntimeError):
        reveal(ann, gate, "/token")
    assert told(gate) == []


def test_the_pages_offer_it_to_whoever_may(gate: Gate) -> None:
    page = f"/gates/{gate.pk}/"
    offered = signed_in(member(gate.team, reveals=True)).get(page).content.decode()
    assert offered.count("<hp-secret>") == 6
    masked = signed_in(member(gate.team)).get(page).content.decode()
    assert masked.count("<hp-secret>") == 0
    assert "the permission to reveal secrets" in masked


def waiting(ledger: str, *, quorum: int = 1, **more: Any) -> tuple[Run, User]:
    """A run that waits at its gate, and somebody who may decide it but see no secret."""
    team = make_people()
    if quorum > 1:
        make_policy(team, name="default", version=2, quorum=quorum, separation=False)
    return advance_to_rest(started("teller", team=team, ledger=ledger, **more)), member(team)


def told_by(run: Run, reader: User) -> list[str]:
    client, found = signed_in(reader), []
    addresses = [f"/runs/{run.pk}/", f"/runs/{run.pk}/events/"]
    for seq in range(1, Run.objects.get(pk=run.pk).seq + 1):
        addresses += [f"/runs/{run.pk}/?at={seq}&view=state", f"/api/runs/{run.pk}/checkpoints/{seq}"]
    for gate in Gate.objects.filter(run=run).values_list("pk", flat=True):
        addresses += [f"/gates/{gate}/", f"/gates/{gate}/preview/", f"/gates/{gate}/status/?seen=1"]
        addresses += [f"/api/gates/{gate}", f"/api/gates/{gate}/outcome"]
    for address in addresses:
        said = client.get(address)
        assert said.status_code == 200, address
        found += [address] if GIVEN.encode() in said.content else []
    return found


def respond(gate: Gate, by: User) -> Any:
    """Give the code instead of having it fetched."""
    body = {
        "seen": bytes(gate.standing().digest).hex(),
        "actions": {"fetch": {"verdict": "respond", "response": GIVEN}, "tell": APPROVE},
    }
    return signed_in(by).post(f"/api/gates/{gate.pk}/decisions", body, content_type="application/json")


def test_a_secret_given_in_an_actions_place_is_told_nowhere(ledger: str) -> None:
    run, ann = waiting(ledger, quorum=2)
    gate = open_gate(run)
    assert respond(gate, ann).status_code == 201
    reader = make_user("Bob Reed", run.team)
    assert GIVEN not in signed_in(reader).get(f"/gates/{gate.pk}/").content.decode()
    decide_run(run, by=reader)
    run = advance_to_rest(run)
    state = store.load(run).state
    assert (run.status, state["code"]) == ("completed", GIVEN)
    assert GIVEN not in json.dumps([state["feedback"], state["decision"]])
    assert told_by(run, reader) == []


def test_a_secret_given_to_a_question_is_told_nowhere_and_not_to_who_comes_second(ledger: str) -> None:
    run, first = waiting(ledger, quorum=2, lost=True)
    second = make_user("Bob Reed", run.team)
    for person in (first, second):
        decide_run(run, by=person)
    run = advance_to_rest(run)
    gate = open_gate(run)
    body = {"seen": bytes(gate.standing().digest).hex(), "verdict": "answer", "answer": {"choice": "not_happened"}}
    said = {"choice": "happened", "value": {"code": GIVEN}}
    decide_run(run, "answer", by=first, answer=said)
    late = signed_in(second).post(f"/api/gates/{gate.pk}/decisions", body, content_type="application/json")
    assert (late.status_code, late.json()["code"]) == (409, "stale")
    assert late.json()["changes"]
    assert GIVEN not in late.content.decode()
    decide_run(run, "answer", by=second, answer=said)
    run = advance_to_rest(run)
    assert (run.status, store.load(run).state["code"]) == ("completed", GIVEN)
    assert told_by(run, second) == []


def test_a_secret_that_was_typed_comes_back_on_no_page_and_stays_in_no_draft(ledger: str) -> None:
    run, ann = waiting(ledger)
    gate = open_gate(run)
    typed = {"verdict.fetch": "respond", "response.fetch": json.dumps(GIVEN), "comment": "later"}
    form, closed = (form_of(gate, "each", **typed, **{"verdict.tell": beside}) for beside in ("edit", "approve"))
    page = post(ann, gate, form)
    assert page.status_code == 422
    assert GIVEN not in page.content.decode()
    signed_in(ann).post(f"/gates/{gate.pk}/drafts/", form)
    kept = Draft.objects.get(gate=gate).fields
    assert (kept["comment"], GIVEN in str(kept)) == ("later", False)
    decide_run(run)
    page = post(ann, gate, closed)
    assert page.status_code == 409
    assert GIVEN not in page.content.decode()


@pytest.fixture
def whole(ledger: str) -> Gate:
    return open_gate(make_run(make_people(whole=True), ledger, note="alone"))


def field(page: str, pattern: str) -> str:
    found = re.search(rf"<textarea[^>]*{pattern}[^>]*>\n(.*?)</textarea>", page, re.DOTALL)
    assert found is not None
    return html.unescape(found[1])


def test_an_edit_of_the_whole_state_keeps_what_is_masked_and_the_run_uses_it(whole: Gate) -> None:
    ann = member(whole.team)
    text = field(signed_in(ann).get(f"/gates/{whole.pk}/").content.decode(), 'id="whole-state"')
    state = json.loads(text)
    assert (state["token"], state["seed"]) == (placeholder_for("/token"), placeholder_for("/seed"))
    state["note"], state["accounts"] = "fine", state["accounts"][1:]
    answer = post(ann, whole, form_of(whole, "edit", state=json.dumps(state)))
    assert answer.status_code == 303
    run = advance_to_rest(whole.run)
    saved = store.load(run).state
    assert (saved["token"], saved["seed"], saved["note"]) == (TOKEN, SEED, "fine")
    assert saved["accounts"] == [{"name": "two", "key": f"{KEY}2"}]


def test_a_placeholder_where_it_would_be_a_value_is_refused(whole: Gate) -> None:
    ann = member(whole.team)
    client = signed_in(ann)
    state = json.loads(field(client.get(f"/gates/{whole.pk}/").content.decode(), 'id="whole-state"'))
    changed = {**state, "note": placeholder_for("/token")}
    form = form_of(whole, "edit", state=json.dumps(changed))
    answer = post(ann, whole, form)
    assert answer.status_code == 422
    assert "the placeholder stands for a secret" in answer.content.decode()
    assert not any(secret in answer.content.decode() for secret in SECRETS)
    for place, other in (("note", "/token"), ("token", "/seed"), ("session", "/session")):
        body = {"seen": form["seen"], "verdict": "edit", "state": {**state, place: placeholder_for(other)}}
        said = client.post(f"/api/gates/{whole.pk}/decisions", body, content_type="application/json")
        assert said.status_code == 422
    assert Gate.objects.get(pk=whole.pk).status == "open"


def test_a_patch_can_neither_copy_a_secret_nor_guess_at_it(whole: Gate) -> None:
    ann = member(whole.team)
    for patch in ([STRAY], [STRAY | {"op": "move"}], [{"op": "test", "path": "/token", "value": TOKEN}]):
        body = {"at": 2, "patch": patch}
        answer = signed_in(ann).post(f"/api/runs/{whole.run_id}/edits", body, content_type="application/json")
        assert answer.status_code == 422, answer.content
    body = {"at": 2, "patch": [{"op": "replace", "path": "/note", "value": "seen"}]}
    assert (
        signed_in(ann).post(f"/api/runs/{whole.run_id}/edits", body, content_type="application/json").status_code == 200
    )
    assert store.load(whole.run).state["token"] == TOKEN


def test_the_form_of_a_runs_state_shows_no_secret_and_keeps_those_that_are_left_alone(whole: Gate) -> None:
    client, address = signed_in(member(whole.team)), f"/runs/{whole.run_id}"
    page = client.get(f"{address}/checkpoints/2/edit/").content.decode()
    assert not any(secret in page for secret in SECRETS)
    form = texts(page)
    assert {"state/token", "state/accounts/0/key", "state/accounts/1/name"} <= set(form)
    assert not {form["state/token"], form["state/accounts/0/key"]} - {""}
    form |= {"state/note": "fine", "state/accounts/1/key": "typed-secret-1", "at": "2"}
    seen = hidden(
        client.post(f"{address}/impacts/", form | {"kind": "edit"}, headers={"HX-Request": "true"}).content.decode()
    )
    assert client.post(f"{address}/edits/", form | seen).status_code == 302
    saved = store.load(whole.run).state
    assert (saved["token"], saved["seed"], saved["note"]) == (TOKEN, SEED, "fine")
    assert [each["key"] for each in saved["accounts"]] == [KEY, "typed-secret-1"]


def test_a_draft_keeps_no_secret_that_was_typed(whole: Gate) -> None:
    ann = member(whole.team)
    state = json.loads(field(signed_in(ann).get(f"/gates/{whole.pk}/").content.decode(), 'id="whole-state"'))
    typed = {"args.pay/token": "typed-secret-1", "state": json.dumps({**state, "token": "typed-secret-2", "note": "n"})}
    typed["override.pay"] = '{"token": "typed-secret-3"'
    signed_in(ann).post(f"/gates/{whole.pk}/drafts/", form_of(whole, "edit", comment="later", **typed))
    kept = Draft.objects.get(gate=whole).fields
    assert kept["comment"] == "later"
    assert json.loads(kept["state"])["note"] == "n"
    assert "typed-secret" not in str(kept)
