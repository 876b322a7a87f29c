"""Undoing a decision, and the receipt, over the API."""

from __future__ import annotations

from typing import Any

import jsonschema  # type: ignore[import-untyped]
from django.contrib.auth.models import User
from django.test import Client

from approvals.models import Gate
from tests.agents.serving.test_unrun import approved, begin, look
from tests.approvals.decisions.undoing.windows import end_window, make_held, now
from tests.factories import ann, bob, decide, make_gate, make_policy, make_team, make_user, unique
from tests.factories.tokens import bearing, make_token
from tests.harness.signed_in_clients import signed_in

from .sent_requests import ask, document


def undo(client: Client, gate: Gate, **body: Any) -> Any:
    return client.post(f"/api/gates/{gate.pk}/undos", body, content_type="application/json")


def receipt(user: User, gate: Gate) -> Any:
    told = ask(user, f"/api/gates/{gate.pk}/receipt")
    jsonschema.validate(told, {"$ref": "#/components/schemas/ReceiptAnswer", "components": document()["components"]})
    return told


def test_the_gate_tells_when_the_decision_takes_effect_and_the_undo_takes_it_back() -> None:
    team = make_team()
    gate, person = make_held(team), ann(team)
    made = decide(gate, person)
    told = ask(person, f"/api/gates/{gate.pk}")
    assert (told["status"], told["settles_as"]) == ("open", "approved")
    assert told["settles_at"] is not None
    answer = undo(signed_in(person), gate, decision=made.pk)
    assert answer.status_code == 201
    assert (answer.json()["id"], answer.json()["gate"]["settles_at"]) == (made.pk, None)
    again = undo(signed_in(person), gate, decision=made.pk)
    assert (again.status_code, again.json()["code"]) == (409, "nothing_to_undo")


def test_the_same_key_undoes_once() -> None:
    team = make_team()
    gate, person = make_held(team), ann(team)
    client = signed_in(person)
    decide(gate, person)
    sent: dict[str, Any] = {"content_type": "application/json", "headers": {"Idempotency-Key": "k1"}}
    first = client.post(f"/api/gates/{gate.pk}/undos", {}, **sent)
    decide(gate, person)
    second = client.post(f"/api/gates/{gate.pk}/undos", {}, **sent)
    assert (first.json()["id"], second["Idempotency-Replayed"]) == (second.json()["id"], "true")
    assert now(gate).settles_as == "approved"


def test_it_is_refused_once_closed_and_where_the_policy_has_no_window() -> None:
    team = make_team()
    gate, person = make_held(team), ann(team)
    decide(gate, person)
    end_window(gate)
    assert undo(signed_in(person), gate).json()["code"] == "too_late"
    other = make_gate(policy=make_policy(team, name=unique("now")))
    assert undo(signed_in(person), other).json()["code"] == "no_undo"
    assert undo(signed_in(make_user("Eve")), gate).status_code == 404


def test_an_agents_token_undoes_nothing_and_a_persons_own_does() -> None:
    team = make_team()
    gate, person = make_held(team), ann(team)
    decide(gate, person)
    _, theirs = make_token(person, agent=gate.run.plan.agent, team=team)
    assert undo(bearing(theirs), gate).status_code == 403
    assert now(gate).settles_at is not None
    _, own = make_token(person)
    assert undo(bearing(own), gate).status_code == 201


def test_a_receipt_tells_what_ran_and_what_has_not() -> None:
    gate = approved()
    person = bob(gate.team)
    look()
    assert receipt(person, gate)["not_run"]["code"] == "no_worker"
    begin(gate)
    told = receipt(person, gate)
    assert told["not_run"] is None
    assert [(each["effect"], each["state"], each["amount"]) for each in told["effects"]] == [
        ("pay", "done", "€120.00"),
        ("reply", "waiting", ""),
    ]
    assert told["effects"][0]["returned"] == {"payment, id": "pay_7"}
    assert [each["name"] for each in told["decided"]] == ["Ann Okafor"]


def test_a_reviewer_from_elsewhere_sees_the_receipt_without_what_is_the_runs() -> None:
    finance, team = make_team("Finance"), make_team()
    gate = make_gate(policy=make_policy(team, groups=(finance,)))
    mira = make_user("Mira", finance)
    decide(gate, mira)
    begin(Gate.objects.select_related("run").get(pk=gate.pk))
    [paid, _] = receipt(mira, gate)["effects"]
    assert (paid["state"], paid["returned"], paid["error"]) == ("done", {}, "")


def test_an_open_gate_has_an_empty_receipt() -> None:
    team = make_team()
    gate = make_gate(team=team)
    told = receipt(ann(team), gate)
    assert (told["status"], told["kind"], told["effects"]) == ("open", None, [])
