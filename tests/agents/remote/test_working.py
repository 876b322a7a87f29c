"""A program elsewhere takes a run from its start to its end, as an agent that lives here would."""

from __future__ import annotations

from typing import Any

import pytest

from agents.models import Effect
from approvals.errors import Invalid
from approvals.models import Gate, Grant
from checkpoints.models import Checkpoint, Plan, Run
from checkpoints.store import load
from tests.factories import ann
from tests.harness.signed_in_clients import signed_in

from .outside_program import WIRE, Program, decide


def kinds(run: int) -> list[tuple[str, str]]:
    """(kind, step) of the run's checkpoints."""
    return list(Checkpoint.objects.filter(run=run).order_by("seq").values_list("kind", "step"))


def test_it_goes_from_start_to_end() -> None:
    program = Program()
    first = program.start()
    assert (first["status"], first["next"]["kind"], first["next"]["step"]) == ("running", "step", "draft")
    assert first["state"]["invoice"] == {"number": 7}
    drafted = program.draft()
    assert (drafted["seq"], drafted["next"]["kind"], drafted["next"]["step"]) == (2, "gate", "review")
    asked = program.ask()
    assert (asked["status"], asked["next"]) == ("waiting", None)
    gate = Gate.objects.get(pk=asked["gate"])
    decide(gate, "edit", arguments={"wire": {**WIRE, "amount": "100.00"}})

    told = program.ok(program.client.get(f"/api/gates/{gate.pk}/outcome"))
    assert told["outcome"]["arguments"] == {"wire": {"to": "ACME", "amount": "100.00"}}
    assert told["edits"] == {"wire": [{"op": "replace", "path": "/amount", "value": "100.00"}]}
    assert [(each["effect"], each["used"]) for each in told["grants"]] == [("wire", False)]

    turn = program.claim()
    assert (turn["next"]["kind"], turn["next"]["step"], turn["next"]["effect"]) == ("effect", "wire", None)
    assert turn["state"]["payment"] == {"to": "ACME", "amount": "100.00"}
    effect = program.begin()
    assert effect["grant"] == told["grants"][0]["id"]
    reported = program.ok(program.report(effect["id"]))
    assert (reported["next"]["kind"], reported["next"]["step"]) == ("step", "report")
    ops = [{"op": "set", "field": "summary", "value": "Paid."}]
    ended = program.ok(program.work("checkpoints", step="report", ops=ops, next_step=""))
    assert (ended["status"], ended["next"]) == ("completed", None)
    assert load(program.row()).state["summary"] == "Paid."
    assert [step for _, step in kinds(program.run)] == ["input", "draft", "review", "wire", "report"]
    row = Effect.objects.get(run=program.run)
    assert (row.status, row.key, row.grant) == ("done", effect["key"], Grant.objects.get(outcome__gate=gate))


def test_a_posted_gate_needs_no_plan() -> None:
    program = Program()
    body: dict[str, Any] = {
        "title": "Wire 120.00 to ACME", "state": {"why": "Invoice 7"},
        "actions": [{"id": "wire", "tool": "bank.wire", "arguments": WIRE, "pinned": ["/amount"]}],
    }  # fmt: skip
    asked = program.ok(program.post("gates", body))
    program.run = asked["run"]
    gate = Gate.objects.get(pk=asked["gate"])
    assert (gate.status, gate.asked.actions[0].arguments) == ("open", WIRE)
    decide(gate, "edit", arguments={"wire": {**WIRE, "amount": "90.00"}})
    turn = program.claim()
    assert turn["state"]["wire"]["amount"] == "90.00"
    effect = program.begin()
    done = program.ok(program.report(effect["id"], writes={"wire_result": {"id": "tx_2"}}))
    assert done["status"] == "completed"
    assert load(program.row()).state["wire_result"] == {"id": "tx_2"}
    assert Run.objects.get(pk=program.run).started_by == program.owner


def test_a_rejection_sends_it_back_with_the_words() -> None:
    program = Program()
    gate = program.to_gate()
    decide(gate, "reject", comment="Too much.", then="back", back_to="draft")
    turn = program.claim()
    assert (turn["next"]["kind"], turn["next"]["step"]) == ("step", "draft")
    assert [each["text"] for each in turn["state"]["feedback"]] == ["Too much."]
    program.draft(amount="80.00")
    assert program.ask()["gate"] != gate.pk


def test_a_rejection_that_stops_ends_the_run() -> None:
    program = Program()
    decide(program.to_gate(), "reject", comment="No.")
    told = program.claim()
    assert (told["status"], told["next"], told["state"]) == ("cancelled", None, None)
    assert "No." in told["reason"]


def test_two_actions_of_a_posted_gate_may_have_definitions_of_the_same_name() -> None:
    program = Program()
    schemas = [
        {"type": "object", "properties": {"to": {"$ref": "#/$defs/Account"}}, "$defs": {"Account": {"type": kind}}}
        for kind in ("string", "integer")
    ]
    actions = [
        {"id": name, "arguments": {"to": to}, "schema": schema}
        for name, to, schema in zip(("mail", "call"), ("a@example.org", 4711), schemas, strict=True)
    ]
    asked = program.ok(program.post("gates", {"title": "Tell them", "actions": actions}))
    gate = Gate.objects.get(pk=asked["gate"])
    for wrong in ({"mail": {"to": 1}}, {"call": {"to": "a"}}):
        with pytest.raises(Invalid):
            decide(gate, "edit", arguments=wrong)
    decide(gate, "edit", arguments={"mail": {"to": "b@example.org"}, "call": {"to": 12}})
    program.run = asked["run"]
    state = program.claim()["state"]
    assert (state["mail"], state["call"]) == ({"to": "b@example.org"}, {"to": 12})


def test_a_posted_gate_without_schemas_has_a_field_for_each_member() -> None:
    program = Program()
    arguments = {"to": "ACME", "net": 7, "rate": 0.5, "now": True, "lines": [1], "bank": {"iban": "DE02"}, "none": None}
    body = {"title": "Wire", "actions": [{"id": "wire", "arguments": arguments}]}
    gate = Gate.objects.get(pk=program.ok(program.post("gates", body))["gate"])
    kinds = {name: part.get("type") for name, part in gate.asked.actions[0].schema["properties"].items()}
    assert kinds == {
        "to": "string", "net": "integer", "rate": "number", "now": "boolean", "lines": None, "bank": "object",
        "none": None,
    }  # fmt: skip


def test_the_schema_of_a_posted_action_may_have_a_name_of_its_own() -> None:
    """The card was right, but the gate was refused for the state's schema, which no program had sent."""
    program = Program()
    schema = {
        "$id": "https://example.org/wire", "type": "object", "properties": {"to": {"$ref": "#/$defs/name"}},
        "$defs": {"name": {"type": "string"}},
    }  # fmt: skip
    body = {"title": "Wire", "actions": [{"id": "wire", "arguments": {"to": "ACME"}, "schema": schema}]}
    gate = Gate.objects.get(pk=program.ok(program.post("gates", body))["gate"])
    assert gate.asked.actions[0].schema["$id"] == schema["$id"]
    decide(gate, "edit", arguments={"wire": {"to": "Initech"}})
    program.run = gate.run_id
    assert program.claim()["state"]["wire"] == {"to": "Initech"}


def test_gates_that_ask_the_same_of_other_things_share_a_version() -> None:
    program = Program()
    for number in range(3):
        action = {"id": "wire", "title": f"Pay invoice {number}", "arguments": {**WIRE, "amount": f"{number}.00"}}
        program.ok(program.post("gates", {"title": f"Invoice {number}", "actions": [action]}))
    assert Plan.objects.filter(agent=program.agent).count() == 1


def test_its_page_says_that_it_lives_outside() -> None:
    program = Program()
    program.to_gate()
    reader = signed_in(ann(program.team))
    for address in ("/agents/", f"/agents/{program.agent}/"):
        page = reader.get(address).content.decode()
        assert "External agent, connected through the API." in page
        assert "no worker" not in page
    assert "last seen" in reader.get(f"/runs/{program.run}/").content.decode()


def test_a_posted_gates_version_is_no_name_for_people() -> None:
    """Everywhere stood the digest of the plan that it implies: payouts posted-2dd84e5ea7f9."""
    program = Program()
    told = program.ok(program.post("gates", {"title": "Wire", "actions": [{"id": "wire", "arguments": WIRE}]}))
    reader = signed_in(ann(program.team))
    for address in (f"/gates/{told['gate']}/", f"/runs/{told['run']}/", "/runs/"):
        page = reader.get(address).content.decode()
        assert program.agent in page
        assert f"{program.agent} posted-" not in page


def test_an_action_without_arguments_says_so_and_offers_no_edit() -> None:
    program = Program()
    asked = program.ok(program.post("gates", {"title": "Restart", "actions": [{"id": "restart", "arguments": {}}]}))
    page = signed_in(ann(program.team)).get(f"/gates/{asked['gate']}/").content.decode()
    assert "This action takes no arguments." in page
    assert 'data-choice="approve"' in page
    assert 'data-choice="edit"' not in page
