"""What is asked under a registered tool is drawn as people registered it, and refused where it does not fit."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.models import Gate, Tool
from approvals.presentation.gate_facts.provenance import Provenance
from checkpoints.models import Run
from tests.agents.api.test_doors import refusal
from tests.agents.remote.outside_program import ACTION, SCHEMA, STEPS, Program
from tests.factories import MEMBER, ann, make_policy, make_team
from tests.harness.signed_in_clients import form_of, post, signed_in

from .lying_program import ARGUMENTS, LIE, lied
from .registered_tools import WIRE, make_tool


@pytest.fixture
def program() -> Program:
    return Program()


def action(**more: Any) -> dict[str, Any]:
    return {"id": "wire", "tool": "bank.wire", "arguments": ARGUMENTS, **more}


def posted(program: Program, **more: Any) -> Any:
    return program.post("gates", {"title": "Wire", "actions": [action(**more)]})


class TestDrawing:
    """A gate under a registered tool."""

    def test_a_lie_is_drawn_as_people_registered_the_tool(self, program: Program) -> None:
        tool = make_tool(program.team)
        gate = lied(program)
        [asked] = gate.standing().card.actions
        assert (asked.title, list(asked.pinned), asked.irreversible) == ("Wire money", ["/amount", "/to"], True)
        assert asked.schema["properties"]["to"]["title"] == "Recipient"
        assert asked.registered is not None
        assert (asked.registered.version, asked.registered.risk) == (tool.version, "high")

    def test_nothing_that_the_program_calls_things_is_on_the_page(self, program: Program) -> None:
        make_tool(program.team)
        gate = lied(program)
        page = signed_in(ann(program.team)).get(f"/gates/{gate.pk}/").content.decode()
        head = page.partition('aria-labelledby="state"')[0]
        assert not [lie for lie in ("Internal note", "Invoice number", "Amount (EUR)", "Eve Evil") if lie in head]
        assert "Recipient" in head
        assert f"Registered tool, version {1}" in head
        assert "is not what runs: amount is 99999.00" in head, "the title is the program's all the same"
        assert not Provenance.of(gate).quotes(gate.standing().card.actions[0])

    @pytest.mark.parametrize(("said", "drawn"), [("low", "high"), ("medium", "high"), ("critical", "critical")])
    def test_the_risk_is_never_less_than_people_said(self, program: Program, said: str, drawn: str) -> None:
        make_tool(program.team)
        gate = lied(program, risk=said)
        assert (gate.risk, gate.standing().card.risk) == (drawn, drawn)

    def test_a_gate_keeps_the_version_that_it_was_opened_under(self, program: Program) -> None:
        make_tool(program.team)
        gate = lied(program)
        before = bytes(gate.standing().digest)
        make_tool(program.team, title="Send money", pinned=[])
        assert bytes(Gate.objects.get(pk=gate.pk).standing().digest) == before
        assert gate.standing().card.actions[0].title == "Wire money"
        assert lied(program).standing().card.actions[0].title == "Send money"

    def test_the_version_is_part_of_what_a_decision_binds(self, program: Program) -> None:
        make_tool(program.team)
        gate = lied(program)
        content = gate.standing().content
        assert content["actions"][0]["registered"] == {"version": 1, "risk": "high"}

    def test_another_teams_tool_is_none_of_ours(self, program: Program) -> None:
        make_tool(Program().team)
        assert lied(program).standing().card.actions[0].registered is None

    def test_a_tool_that_was_taken_out_of_use_is_none(self, program: Program) -> None:
        make_tool(program.team)
        make_tool(program.team, used=False)
        assert lied(program).standing().card.actions[0].registered is None

    def test_whoever_asks_cannot_say_that_its_tool_is_registered(self, program: Program) -> None:
        registered = {"version": 1, "risk": "low"}
        told = refusal(posted(program, registered=registered), 422)
        assert told["errors"][0]["parameter"] == "/actions/0/registered"


class TestRefusing:
    """What does not fit opens no gate."""

    @pytest.mark.parametrize(
        ("arguments", "place"),
        [
            ({**ARGUMENTS, "amount": "1e9"}, "/actions/0/arguments/amount"),
            ({**ARGUMENTS, "to": "x" * 41}, "/actions/0/arguments/to"),
            ({**ARGUMENTS, "note": "more"}, "/actions/0/arguments"),
            ({"to": "eve"}, "/actions/0/arguments"),
        ],
    )
    def test_arguments_that_do_not_fit(self, program: Program, arguments: dict[str, Any], place: str) -> None:
        make_tool(program.team)
        told = refusal(posted(program, arguments=arguments), 422)
        assert told["code"] == "tool_mismatch"
        assert [each["parameter"] for each in told["errors"]] == [place]
        assert "as bank.wire is registered" in told["detail"]
        assert not Run.objects.filter(team=program.team).exists()

    def test_an_undo_of_what_people_said_cannot_be_undone(self, program: Program) -> None:
        make_tool(program.team, irreversible=True)
        told = refusal(posted(program, undo="bank.cancel"), 422)
        assert (told["code"], told["errors"][0]["parameter"]) == ("tool_mismatch", "/actions/0/undo")

    def test_the_same_at_a_gate_of_a_registered_plan(self, program: Program) -> None:
        make_tool(program.team, undo="cancel it")
        program.start()
        program.draft(to="x" * 41)
        before = Gate.objects.count()
        answer = program.work("gates", step="review", title="Wire", actions=[ACTION])
        told = refusal(answer, 422)
        assert told["code"] == "tool_mismatch"
        assert [each["parameter"] for each in told["errors"]] == ["/actions/0/arguments/to"]
        assert Gate.objects.count() == before

    def test_what_its_plan_keeps_secret_and_the_registered_schema_shows(self, program: Program) -> None:
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


class TestDemanding:
    """A policy that takes registered tools only."""

    @pytest.fixture(autouse=True)
    def demanded(self, program: Program) -> None:
        make_policy(program.team, name="default", registered_only=True)

    def test_a_tool_that_nobody_registered(self, program: Program) -> None:
        told = refusal(posted(program), 422)
        assert told["code"] == "tool_not_registered"
        assert [each["parameter"] for each in told["errors"]] == ["/actions/0/tool"]
        assert "its policy default takes registered tools only" in told["detail"]
        assert not Run.objects.filter(team=program.team).exists()

    def test_one_of_several_actions(self, program: Program) -> None:
        make_tool(program.team)
        other = {"id": "mail", "tool": "mail.send", "arguments": {"text": "Hi"}}
        told = refusal(program.post("gates", {"title": "Wire", "actions": [action(), other]}), 422)
        assert [each["parameter"] for each in told["errors"]] == ["/actions/1/tool"]

    def test_an_effect_that_no_action_names_has_no_tool(self, program: Program) -> None:
        """A grant for it was given to the first action, whose tool was registered as another one."""
        make_tool(program.team)
        program.start()
        program.draft()
        asked = {**ACTION, "tool": "bank.wire", "arguments": ARGUMENTS}
        loose = {name: value for name, value in asked.items() if name not in ("effect", "pointer")}
        told = refusal(program.work("gates", step="review", title="Wire", actions=[loose]), 422)
        assert "no action names the effect wire" in told["detail"]

    def test_a_registered_one_is_asked(self, program: Program) -> None:
        make_tool(program.team)
        assert posted(program).status_code == 201

    def test_the_same_at_a_gate_of_a_registered_plan(self, program: Program) -> None:
        program.start()
        program.draft()
        told = refusal(program.work("gates", step="review", title="Wire", actions=[ACTION]), 422)
        assert (told["code"], told["errors"][0]["parameter"]) == ("tool_not_registered", "/actions/0/tool")

    def test_a_milder_policy_that_its_plan_names_is_its_own_matter(self, program: Program) -> None:
        make_policy(program.team, name="mild")
        steps = [{**step, "policy": "mild"} if step["kind"] == "gate" else step for step in STEPS]
        program.register(steps=steps)
        program.run = program.ok(program.post("runs", {"agent": program.agent, "input": {"invoice": {}}}))["id"]
        program.claim()
        program.draft()
        assert program.work("gates", step="review", title="Wire", actions=[ACTION]).status_code == 201


def test_the_arguments_that_are_drawn_are_those_that_the_effect_reads(program: Program) -> None:
    """People saw 10.00 under their own labels, and the effect was handed what the state held."""
    make_tool(program.team)
    program.start()
    program.draft()
    asked = {"id": "wire", "title": "Wire", "tool": "bank.wire", "effect": "wire", "arguments": ARGUMENTS}
    told = refusal(program.work("gates", step="review", title="Wire", actions=[asked]), 422)
    assert [each["parameter"] for each in told["errors"]] == ["/actions/0/pointer"]
    assert "in a field that wire reads" in told["detail"]


class TestEditing:
    """An edit fits the version by which the gate was drawn."""

    @pytest.mark.parametrize(
        ("typed", "said"), [({"args.wire/amount": "123456.00"}, "does not match"), ({"args.wire/to": "x" * 41}, "long")]
    )
    def test_an_edit_that_does_not_fit_is_refused_at_its_field(
        self, program: Program, typed: dict[str, str], said: str
    ) -> None:
        make_tool(program.team)
        gate = Gate.objects.get(pk=program.ok(posted(program))["gate"])
        answer = post(ann(program.team), gate, form_of(gate, "edit", **typed))
        assert answer.status_code == 422
        assert said in answer.content.decode()
        assert Gate.objects.get(pk=gate.pk).proposal == 1

    def test_one_that_fits_is_taken_whatever_was_registered_since(self, program: Program) -> None:
        make_tool(program.team)
        gate = Gate.objects.get(pk=program.ok(posted(program))["gate"])
        narrow = {**WIRE, "properties": {**WIRE["properties"], "to": {"const": "nobody"}}}
        make_tool(program.team, schema=narrow)
        assert post(ann(program.team), gate, form_of(gate, "edit", **{"args.wire/to": "acme"})).status_code == 303
        [final] = Gate.objects.get(pk=gate.pk).standing().card.actions
        assert final.arguments["to"] == "acme"
        assert final.registered is not None
        assert final.registered.version == 1


def test_two_versions_of_one_tool_have_two_numbers(program: Program) -> None:
    assert [make_tool(program.team).version, make_tool(program.team).version] == [1, 2]
    assert Tool.objects.in_use().filter(team=program.team).count() == 1


def test_the_words_of_the_lie_fit_the_registered_schema() -> None:
    assert LIE["actions"][0]["arguments"].keys() == WIRE["properties"].keys()


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


def test_a_long_list_goes_on_where_it_ended() -> None:
    program = Program()
    for name in ("a", "b", "c"):
        make_tool(program.team, name=name)
    first = program.ok(program.client.get("/api/tools?limit=2"))
    rest = program.ok(program.client.get(f"/api/tools?limit=2&cursor={first['next']}"))
    assert [each["name"] for each in (*first["items"], *rest["items"])] == ["a", "b", "c"]
    assert rest["next"] is None


def test_what_a_gate_says_of_itself_that_no_argument_bears_out_is_told() -> None:
    program = Program()
    gate = lied(program)
    told = program.ok(program.client.get(f"/api/gates/{gate.pk}"))
    assert told["outside"] is True
    assert "“€10.00” in the title is not what runs: amount is 99999.00. It appears only in ref." in told["unsupported"]
