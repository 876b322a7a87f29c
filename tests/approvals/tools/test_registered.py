"""Tools are registered in the administration; what is asked under one is drawn as people registered it, or refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse

from approvals import tools
from approvals.models import Gate, Policy, Tool
from approvals.presentation.gate_facts.provenance import Provenance
from checkpoints.models import Event, Run
from checkpoints.values import digests
from tests.agents.api.test_doors import refusal
from tests.agents.remote.outside_program import ACTION, SCHEMA, Program
from tests.config.administration.forms import standing
from tests.factories import MEMBER, ann, make_policy, make_team, make_user
from tests.harness.signed_in_clients import confirmed, form_of, post, signed_in

from .registered_tools import ARGUMENTS, WIRE, lied, make_tool

ADD = "admin:approvals_tool_add"


@pytest.fixture
def program() -> Program:
    return Program()


def action(**more: Any) -> dict[str, Any]:
    return {"id": "wire", "tool": "bank.wire", "arguments": ARGUMENTS, **more}


def posted(program: Program, **more: Any) -> Any:
    return program.post("gates", {"title": "Wire", "actions": [action(**more)]})


def test_a_lie_is_drawn_as_people_registered_the_tool(program: Program) -> None:
    tool = make_tool(program.team)
    gate = lied(program)
    [asked] = gate.standing().card.actions
    assert (asked.title, list(asked.pinned), asked.irreversible) == ("Wire money", ["/amount", "/to"], True)
    assert asked.schema["properties"]["to"]["title"] == "Recipient"
    assert asked.registered is not None
    assert (asked.registered.version, asked.registered.risk) == (tool.version, "high")

    assert gate.standing().content["actions"][0]["registered"] == {"version": 1, "risk": "high"}, "bound"
    page = signed_in(ann(program.team)).get(f"/gates/{gate.pk}/").content.decode()
    head = page.partition('aria-labelledby="state"')[0]
    assert not [lie for lie in ("Internal note", "Invoice number", "Amount (EUR)", "Eve Evil") if lie in head]
    assert "Recipient" in head
    assert f"Registered tool, version {1}" in head
    assert "is not what runs: amount is 99999.00" in head, "the title is the program's all the same"
    assert not Provenance.of(gate).quotes(gate.standing().card.actions[0])


def test_a_gate_keeps_the_version_that_it_was_opened_under_and_no_less_risk_than_people_said(program: Program) -> None:
    make_tool(Program().team)
    assert lied(program).standing().card.actions[0].registered is None, "another team's"
    make_tool(program.team)
    for said, drawn in (("medium", "high"), ("critical", "critical")):
        gate = lied(program, risk=said)
        assert (gate.risk, gate.standing().card.risk) == (drawn, drawn)
    before = bytes(gate.standing().digest)
    make_tool(program.team, title="Send money", pinned=[])
    assert bytes(Gate.objects.get(pk=gate.pk).standing().digest) == before
    assert gate.standing().card.actions[0].title == "Wire money"
    assert lied(program).standing().card.actions[0].title == "Send money"
    make_tool(program.team, used=False)
    assert lied(program).standing().card.actions[0].registered is None, "taken out of use"


@pytest.mark.parametrize(
    ("said", "place"),
    [
        ({"arguments": {**ARGUMENTS, "to": "x" * 41}}, "/actions/0/arguments/to"),
        ({"arguments": {**ARGUMENTS, "note": "more"}}, "/actions/0/arguments"),
        ({"arguments": {"to": "eve"}}, "/actions/0/arguments"),
        ({"undo": "bank.cancel"}, "/actions/0/undo"),  # of what people said cannot be undone
        ({"registered": {"version": 1, "risk": "low"}}, "/actions/0/registered"),
    ],
)
def test_what_does_not_fit_its_registered_tool_opens_no_gate(
    program: Program, said: dict[str, Any], place: str
) -> None:
    make_tool(program.team, irreversible=True)
    told = refusal(posted(program, **said), 422)
    assert [each["parameter"] for each in told["errors"]] == [place]
    assert "registered" in said or told["code"] == "tool_mismatch"
    assert "arguments" not in said or "as bank.wire is registered" in told["detail"]
    assert not Run.objects.filter(team=program.team).exists()


def test_what_its_plan_keeps_secret_and_the_registered_schema_shows(program: Program) -> None:
    make_tool(program.team, undo="cancel it")
    part = SCHEMA["properties"]["payment"]
    hidden = {**part, "properties": {**part["properties"], "to": {"type": "string", "writeOnly": True}}}
    schema = {**SCHEMA, "properties": {**SCHEMA["properties"], "payment": hidden}}
    program.register(state_schema=schema)
    program.run = program.ok(program.post("runs", {"agent": program.agent, "input": {"invoice": {}}}))["id"]
    program.claim()
    program.draft()
    told = refusal(program.work("gates", step="review", title="Wire", actions=[ACTION]), 422)
    assert "secret in the agent's plan" in told["detail"]


def test_a_policy_that_takes_registered_tools_only_takes_no_action_of_another_and_none_loose(program: Program) -> None:
    """A grant for an effect that no action named was given to the first, whose tool was registered as another one."""
    make_policy(program.team, name="default", registered_only=True)
    told = refusal(posted(program), 422)
    assert told["code"] == "tool_not_registered"
    assert [each["parameter"] for each in told["errors"]] == ["/actions/0/tool"]
    assert "its policy default takes registered tools only" in told["detail"]
    assert not Run.objects.filter(team=program.team).exists()
    make_tool(program.team)
    other = {"id": "mail", "tool": "mail.send", "arguments": {"text": "Hi"}}
    told = refusal(program.post("gates", {"title": "Wire", "actions": [action(), other]}), 422)
    assert [each["parameter"] for each in told["errors"]] == ["/actions/1/tool"]
    assert posted(program).status_code == 201
    program.start()
    program.draft()
    asked = {**ACTION, "tool": "bank.wire", "arguments": ARGUMENTS}
    loose = {name: value for name, value in asked.items() if name not in ("effect", "pointer")}
    told = refusal(program.work("gates", step="review", title="Wire", actions=[loose]), 422)
    assert "no action names the effect wire" in told["detail"]


def test_the_arguments_that_are_drawn_are_those_that_the_effect_reads(program: Program) -> None:
    """People saw 10.00 under their own labels, and the effect was handed what the state held."""
    make_tool(program.team, undo="cancel it")
    program.start()
    program.draft(to="x" * 41)
    told = refusal(program.work("gates", step="review", title="Wire", actions=[ACTION]), 422)
    assert (told["code"], told["errors"][0]["parameter"]) == ("tool_mismatch", "/actions/0/arguments/to")
    asked = {"id": "wire", "title": "Wire", "tool": "bank.wire", "effect": "wire", "arguments": ARGUMENTS}
    told = refusal(program.work("gates", step="review", title="Wire", actions=[asked]), 422)
    assert [each["parameter"] for each in told["errors"]] == ["/actions/0/pointer"]
    assert "in a field that wire reads" in told["detail"]


def test_an_edit_fits_the_version_by_which_the_gate_was_drawn_whatever_was_registered_since(program: Program) -> None:
    make_tool(program.team)
    gate = Gate.objects.get(pk=program.ok(posted(program))["gate"])
    answer = post(ann(program.team), gate, form_of(gate, "edit", **{"args.wire/amount": "123456.00"}))
    assert answer.status_code == 422
    assert "does not match" in answer.content.decode()
    assert Gate.objects.get(pk=gate.pk).proposal == 1
    make_tool(program.team, schema={**WIRE, "properties": {**WIRE["properties"], "to": {"const": "nobody"}}})
    assert post(ann(program.team), gate, form_of(gate, "edit", **{"args.wire/to": "acme"})).status_code == 303
    [final] = Gate.objects.get(pk=gate.pk).standing().card.actions
    assert final.arguments["to"] == "acme"
    assert final.registered is not None
    assert final.registered.version == 1


def test_a_program_reads_the_tools_of_its_team_in_the_version_that_counts() -> None:
    program = Program()
    make_tool(program.team)
    make_tool(program.team, title="Send money")
    make_tool(program.team, name="gone", used=False)
    make_tool(make_team(may=MEMBER))
    told = program.ok(program.client.get("/api/tools"))
    [tool] = told["items"]
    assert told["next"] is None
    assert (tool["name"], tool["version"], tool["title"], tool["risk"]) == ("bank.wire", 2, "Send money", "high")
    assert (tool["team"], tool["pinned"]) == (program.team.name, ["/amount", "/to"])
    assert tool["arguments"]["properties"]["to"]["title"] == "Recipient"
    assert tool["arguments"]["additionalProperties"] is False


def test_what_a_gate_says_of_itself_that_no_argument_bears_out_is_told() -> None:
    program = Program()
    gate = lied(program)
    told = program.ok(program.client.get(f"/api/gates/{gate.pk}"))
    assert told["outside"] is True
    assert "“€10.00” in the title is not what runs: amount is 99999.00. It appears only in ref." in told["unsupported"]


@pytest.fixture(scope="module")
def root() -> Client:
    return confirmed(make_user("Root", superuser=True))


@pytest.fixture
def team() -> Group:
    return make_team(may=MEMBER)


def form(team: Group, **said: Any) -> dict[str, Any]:
    plain = {"type": "object", "properties": {"to": {"type": "string"}, "amount": {"type": "string"}}}
    return {
        "team": team.pk, "name": "bank.wire", "title": "Wire money", "schema": json.dumps(plain), "risk": "high",
        "labels": "/to: Recipient\n/amount: Amount (EUR)", "pinned": "/amount\n/to", "used": "on", "undo": "", **said,
    }  # fmt: skip


def address(tool: Tool) -> str:
    return reverse("admin:approvals_tool_change", args=[tool.pk])


def faults(answer: Any) -> str:
    assert answer.status_code == 200
    return " ".join(str(answer.context["adminform"].form.errors).split())


def test_a_tool_is_registered_with_its_labels_and_pins(root: Client, team: Group) -> None:
    assert root.post(reverse(ADD), form(team)).status_code == 302
    tool = Tool.objects.get(team=team)
    assert (tool.version, tool.pinned, tool.risk) == (1, ["/amount", "/to"], "high")
    assert tool.schema == {
        "type": "object",
        "properties": {
            "to": {"type": "string", "title": "Recipient"},
            "amount": {"type": "string", "title": "Amount (EUR)"},
        },
        "additionalProperties": False,
    }
    event = Event.objects.get(kind="tool.changed", team_id=team.pk)
    told = json.loads(bytes(event.data))
    assert (event.version, told["name"], told["risk"]) == (1, "bank.wire", "high")
    assert told["schema"] == digests.of_value(tool.schema).hex()


def test_a_change_is_the_next_version_which_a_policy_demands_from_its_own_next(root: Client, team: Group) -> None:
    first = make_tool(team)
    sent = standing(root.get(address(first)).content.decode()) | {"title": "Send money"}
    assert root.post(address(first), sent).status_code == 302
    second = Tool.objects.get(team=team, version=2)
    assert (second.title, second.schema, second.pinned) == ("Send money", first.schema, first.pinned)
    assert Tool.objects.get(pk=first.pk).title == "Wire money"
    assert "This is version 1" in root.get(address(first), follow=True).content.decode()
    assert "Version 2 was written since" in root.post(address(first), sent).content.decode()
    assert Tool.objects.filter(team=team).count() == 2
    make_user("Rae", team, may=("approvals.decide_gate",))
    policy = make_policy(team)
    place = reverse("admin:approvals_policy_change", args=[policy.pk])
    sent = standing(root.get(place).content.decode()) | {"registered_only": "on"}
    assert root.post(place, sent).status_code == 302
    newest = Policy.objects.named(policy.name, team=team)
    assert (newest.version, newest.registered_only) == (2, True)
    assert json.loads(bytes(Event.objects.get(kind="policy.changed", team_id=team.pk).data))["registered_only"] is True


def test_an_argument_named_as_a_keyword_is_closed_like_any_other() -> None:
    """One called `default` was taken for a default value, and left open."""
    inner = {"type": "object", "properties": {"to": {"type": "string"}}}
    made = tools.closed({"type": "object", "properties": {"default": inner}, "default": {"default": inner}})
    assert made["properties"]["default"] == {**inner, "additionalProperties": False}
    assert made["default"] == {"default": inner}


@pytest.mark.parametrize(
    ("said", "field", "words"),
    [
        ({"schema": "{"}, "schema", "Write JSON"),
        ({"schema": '{"type": "array"}'}, "schema", "Arguments are an object"),
        ({"schema": '{"type": "object", "properties": {"a": {"$ref": "https://evil.example/x"}}}'}, "schema", "refer"),
        ({"schema": json.dumps({"type": "object", "properties": {f"a{n}": {} for n in range(201)}})}, "schema", "200"),
        ({"schema": json.dumps({"type": "object", "properties": {"to": {"title": "x" * 70_000}}})}, "schema", "64"),
        ({"labels": "/nothing: Nothing"}, "labels", "no argument /nothing"),
        ({"pinned": "/nothing"}, "pinned", "no argument /nothing"),
        ({"irreversible": "on", "undo": "bank.cancel"}, "undo", "cannot be undone"),
        ({"name": "b\u0430nk.wire"}, "name", "plain letters"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused(root: Client, team: Group, said: dict[str, Any], field: str, words: str) -> None:
    answer = root.post(reverse(ADD), form(team, **said))
    assert words in faults(answer)
    assert field in answer.context["adminform"].form.errors
    assert not Tool.objects.filter(team=team).exists()


def test_only_whom_the_administration_lets_registers_tools(team: Group) -> None:
    tool = make_tool(team)
    assert signed_in(make_user("Ann", team, may=("approvals.decide_gate",))).get(address(tool)).status_code == 302
    staff = make_user("Sam Staff", may=("approvals.view_tool",))
    staff.is_staff = True
    staff.save()
    client = confirmed(staff)
    assert client.get(address(tool)).status_code == 200
    assert client.post(address(tool), form(team)).status_code == 403
    assert client.get(reverse(ADD)).status_code == 403
    assert confirmed(make_user("Rut", superuser=True)).post(
        reverse("admin:approvals_tool_delete", args=[tool.pk]), {"post": "yes"}
    ).status_code == 403  # fmt: skip
    assert Tool.objects.filter(team=team).count() == 1
