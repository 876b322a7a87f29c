"""Secrets of a state that a program is handed: kept in no answer, and no person's for the asking."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from agents.api.protocol.idempotency_keys import REPLAYED
from agents.models import Answer, Effect
from approvals import tools
from checkpoints import store
from checkpoints.models import Event, Run
from tests.agents.api.test_doors import refusal
from tests.factories import MEMBER, make_user
from tests.factories.tokens import bearing, make_token
from tests.harness.signed_in_clients import signed_in

from .outside_program import SCHEMA, STEPS, Program, decide
from .test_going_back import rewind

SECRET = "acct-7f3a9c0d"
INVOICE = {"type": "object", "properties": {"account": {"type": "string", "writeOnly": True}}}


@dataclass
class Keeper(Program):
    """A program whose state holds a secret."""

    def register(self, **more: Any) -> dict[str, Any]:
        schema = {**SCHEMA, "properties": {**SCHEMA["properties"], "invoice": INVOICE}}
        return super().register(state_schema=schema, **more)


def queued() -> Keeper:
    """With a run that nobody has claimed."""
    program = Keeper()
    program.register()
    program.run = program.ok(program.post("runs", {"input": {"invoice": {"account": SECRET}}}))["id"]
    return program


HIDDEN = pytest.mark.parametrize(
    ("part", "beside"),
    [
        ({"$ref": "#account"}, {"$defs": {"a": {"$anchor": "account", "writeOnly": True}}}),
        ({"$dynamicRef": "#account"}, {"$defs": {"a": {"$dynamicAnchor": "account", "writeOnly": True}}}),
        ({"$ref": "https://x/y#/$defs/a"}, {"$id": "https://x/y", "$defs": {"a": {"writeOnly": True}}}),
        ({"$id": "z", "$ref": "#/$defs/a", "$defs": {"a": {"writeOnly": True}}}, {"$defs": {"a": {}}}),
    ],
    ids=["by an anchor", "by a dynamic anchor", "by its own address", "in a schema of its own"],
)


@HIDDEN
def test_a_secret_that_only_a_validator_would_find_is_refused(part: dict[str, Any], beside: dict[str, Any]) -> None:
    """The plan was taken, its values were checked by the definition, and shown as if nothing hid them."""
    schema = {**SCHEMA, "properties": {**SCHEMA["properties"], "invoice": part}, **beside}
    program = Program()
    answer = program.post(f"agents/{program.agent}/versions", {"version": "1", "state_schema": schema, "steps": STEPS})
    [fault] = refusal(answer, 422)["errors"]
    assert fault["parameter"] == "/state_schema"
    assert "so that its secrets are found" in fault["detail"]


@HIDDEN
def test_such_a_secret_in_the_schema_of_an_action_is_refused(part: dict[str, Any], beside: dict[str, Any]) -> None:
    """Only a state's schema was looked at: the card of the action was taken, and showed the argument in the open."""
    program = Program()
    program.start()
    program.draft()
    schema = {"type": "object", "properties": {"account": part}, **beside}
    action = {"id": "wire", "arguments": {"account": SECRET}, "schema": schema}
    asked: dict[str, Any] = {"step": "review", "title": "Wire", "actions": [{**action, "effect": "wire"}]}
    for answer in (program.work("gates", **asked), program.post("gates", {"title": "Wire", "actions": [action]})):
        assert "so that its secrets are found" in refusal(answer, 422)["errors"][0]["detail"]
    answered = {"id": "wire", "pointer": "/payment", "response": schema, "verdicts": ["approve", "respond"]}
    refused = refusal(program.work("gates", **asked | {"actions": [answered]}), 422)
    assert "so that its secrets are found" in refused["errors"][0]["detail"]


@HIDDEN
def test_such_a_secret_in_the_schema_of_a_tool_is_refused(part: dict[str, Any], beside: dict[str, Any]) -> None:
    """A tool with the definition's own anchor beside a plain reference was registered."""
    there = {"$ref": "#/$defs/a"}
    schema = {"type": "object", "properties": {"account": part, "other": there}, **beside}
    assert "refer to #/$defs/" in tools.fault(schema)


def keeps_a_secret() -> bool:
    return any(SECRET.encode() in bytes(body) for body in Answer.objects.values_list("body", flat=True))


def test_the_answers_to_claims_and_effects_are_kept_without_the_state_and_given_again_with_it() -> None:
    """Whole states lay in the table of answers for a week, also where retention had removed the run."""
    program = queued()
    first = program.post(f"runs/{program.run}/claims", {}, key="c")
    program.token = first.json()["token"]
    assert first.json()["state"]["invoice"] == {"account": SECRET}
    assert not keeps_a_secret()
    again = program.post(f"runs/{program.run}/claims", {}, key="c")
    assert (again[REPLAYED], again.content) == ("true", first.content)
    program.draft()
    late = program.post(f"runs/{program.run}/claims", {}, key="c").json()
    assert late == {**first.json(), "state": None}
    gate = program.ask()["gate"]
    decide(Run.objects.get(pk=program.run).gates.get(pk=gate))
    program.claim()
    begun = program.work("effects", step="wire", key="e")
    assert program.work("effects", step="wire", key="e").content == begun.content
    assert begun.json()["state"]["invoice"] == {"account": SECRET}
    assert not keeps_a_secret()


def test_what_is_to_be_taken_back_is_given_again_with_the_state_that_it_left() -> None:
    program = queued()
    program.claim()
    program.draft()
    decide(Run.objects.get(pk=program.run).gates.get(pk=program.ask()["gate"]))
    program.claim()
    program.ok(program.report(program.begin()["id"]))
    rewind(program, 1)
    program.claim()
    program.draft(amount="80.00")
    decide(Run.objects.get(pk=program.run).gates.get(pk=program.ask()["gate"]))
    first = program.post(f"runs/{program.run}/claims", {}, key="u")
    program.token = first.json()["token"]
    assert first.json()["next"]["kind"] == "undo"
    assert first.json()["state"]["payment"]["amount"] == "120.00"
    assert program.post(f"runs/{program.run}/claims", {}, key="u").content == first.content
    undone = Effect.objects.get(run=program.run, undoes=None)
    begun = program.work("effects", undoes=undone.pk, key="v")
    assert json.loads(program.work("effects", undoes=undone.pk, key="v").content) == begun.json()
    assert not keeps_a_secret()


def test_a_person_gets_them_by_the_permission_to_reveal_and_with_an_event() -> None:
    """Whoever might start runs had every secret of a queued run by claiming it, without a trace."""
    program = queued()
    other = make_user("Mo Member", program.team)
    for client in (signed_in(other), bearing(make_token(other)[1])):
        answer = client.post(f"/api/runs/{program.run}/claims", {}, content_type="application/json")
        assert "with a token of its agent" in refusal(answer, 403)["detail"]
        assert Run.objects.get(pk=program.run).status == "queued"
    program.claim()
    body = {"token": program.token, "undoes": 1}
    taken = signed_in(other).post(f"/api/runs/{program.run}/effects", body, content_type="application/json")
    refusal(taken, 403)
    assert not Event.objects.filter(run_id=program.run, kind="secret.revealed").exists()
    program.ok(program.work("releases"))
    trusted = make_user("Rea Revealer", program.team, may=("approvals.reveal_secret", *MEMBER))
    shown = signed_in(trusted).post(f"/api/runs/{program.run}/claims", {}, content_type="application/json")
    assert shown.json()["state"] == store.load(program.row()).state
    told = Event.objects.get(run_id=program.run, kind="secret.revealed")
    assert told.actor == f"user:{trusted.pk}"


def test_where_there_are_none_a_person_works_as_before() -> None:
    program = Program()
    program.register()
    run = program.ok(program.post("runs", {"input": {"invoice": {}}}))["id"]
    other = signed_in(make_user("Mo Member", program.team))
    assert other.post(f"/api/runs/{run}/claims", {}, content_type="application/json").status_code == 201
