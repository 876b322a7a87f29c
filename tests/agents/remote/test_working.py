"""A program elsewhere takes a run from its start to its end, as an agent that lives here would: step by
step or several at once, and it reads the signals that its version declares."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from agents.api.protocol.waiting import AWAITS
from agents.models import Effect
from approvals.errors import Invalid
from approvals.models import Gate, Grant
from checkpoints import actors
from checkpoints.models import Plan, Run
from tests.agents.api.test_waiting import Answered
from tests.agents.remote.outside_program import SCHEMA, STEPS, WIRE, Program, decide
from tests.agents.remote.test_refusals import refused, traces
from tests.factories import ann
from tests.factories.driven_runs import state, trail
from tests.harness.signed_in_clients import signed_in
from tests.harness.waiting import PATIENCE

ROUND: list[dict[str, Any]] = [{"name": "write", "writes": ["log", "summary"], "jumps": ["write"], "ends": True}]
SIGNALS: dict[str, Any] = {
    "delivered": {"type": "object", "properties": {"by": {"type": "string"}}, "required": ["by"]},
    "stop": {"type": "null"},
}


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
    assert state(program.row())["summary"] == "Paid."
    assert [step for _, step in trail(program.row())] == ["input", "draft", "review", "wire", "report"]
    row = Effect.objects.get(run=program.run)
    assert (row.status, row.key, row.grant) == ("done", effect["key"], Grant.objects.get(outcome__gate=gate))


def test_a_rejection_sends_it_back_with_the_words_and_one_that_stops_ends_the_run() -> None:
    program = Program()
    gate = program.to_gate()
    decide(gate, "reject", comment="Too much.", then="back", back_to="draft")
    turn = program.claim()
    assert (turn["next"]["kind"], turn["next"]["step"]) == ("step", "draft")
    assert [each["text"] for each in turn["state"]["feedback"]] == ["Too much."]
    program.draft(amount="80.00")
    again = Gate.objects.get(pk=program.ask()["gate"])
    assert again.pk != gate.pk
    decide(again, "reject", comment="No.")
    told = program.claim()
    assert (told["status"], told["next"], told["state"]) == ("cancelled", None, None)
    assert "No." in told["reason"]


def test_two_actions_of_a_posted_gate_may_have_definitions_of_the_same_name_and_schemas_names_of_their_own() -> None:
    """The card was right, but the gate was refused for the state's schema, which no program had sent."""
    program = Program()
    schemas = [
        {"$id": f"https://example.org/{kind}", "type": "object", "properties": {"to": {"$ref": "#/$defs/Account"}},
         "$defs": {"Account": {"type": kind}}}
        for kind in ("string", "integer")
    ]  # fmt: skip
    actions = [
        {"id": name, "arguments": {"to": to}, "schema": schema}
        for name, to, schema in zip(("mail", "call"), ("a@example.org", 4711), schemas, strict=True)
    ]
    asked = program.ok(program.post("gates", {"title": "Tell them", "actions": actions}))
    gate = Gate.objects.get(pk=asked["gate"])
    assert [action.schema["$id"] for action in gate.asked.actions] == [schema["$id"] for schema in schemas]
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


def test_its_pages_say_that_it_lives_outside_and_a_posted_gates_version_is_no_name_for_people() -> None:
    """Everywhere stood the digest of the plan that it implies: payouts posted-2dd84e5ea7f9."""
    program = Program()
    program.to_gate()
    told = [
        program.ok(program.post("gates", {"title": f"Wire {n}", "actions": [{"id": "wire", "arguments": WIRE}]}))
        for n in range(2)
    ]
    assert Plan.objects.filter(agent=program.agent).count() == 2, "they share a version"
    reader = signed_in(ann(program.team))
    for address in ("/agents/", f"/agents/{program.agent}/"):
        page = reader.get(address).content.decode()
        assert "External agent, connected through the API." in page
        assert "no worker" not in page
    assert "last seen" in reader.get(f"/runs/{program.run}/").content.decode()
    for address in (f"/gates/{told[0]['gate']}/", f"/runs/{told[0]['run']}/", "/runs/"):
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


def test_a_dash_stands_for_the_agent_of_the_token() -> None:
    program = Program()
    own, program.agent = program.agent, "-"
    assert program.register()["agent"] == own


def test_a_no_goes_back_to_a_step_without_a_code_hash() -> None:
    """The preview of such a decision, and with it the decision, ended in an error of the server."""
    program = Program()
    program.start(steps=[{name: each for name, each in step.items() if name != "code_hash"} for step in STEPS])
    program.draft()
    gate = program.ask()["gate"]
    assert program.client.get(f"/api/gates/{gate}/impacts").status_code == 200
    decide(Gate.objects.get(pk=gate), "reject", comment="Less.", then="back")
    assert program.claim()["next"]["step"] == "draft"


def writing_of(*items: str, **more: Any) -> dict[str, Any]:
    return {"step": "write", "ops": [{"op": "append", "field": "log", "items": items}], "next_step": "write", **more}


@pytest.fixture
def writing() -> Program:
    """A program at a step that goes round."""
    program = Program()
    program.register(steps=ROUND)
    program.run = program.ok(program.post("runs", {"agent": program.agent, "input": {"invoice": {}, "log": []}}))["id"]
    program.claim()
    return program


def logs(program: Program) -> list[list[str]]:
    """The list as each checkpoint has it, the oldest first."""
    assert program.ok(program.client.get(f"/api/runs/{program.run}/verification"))["ok"] is True
    newest = Run.objects.get(pk=program.run).seq
    said = [program.client.get(f"/api/runs/{program.run}/checkpoints/{seq}") for seq in range(1, newest + 1)]
    return [program.ok(each)["state"]["log"] for each in said]


def test_each_is_a_checkpoint_of_its_own(writing: Program) -> None:
    several = [writing_of("a"), writing_of("b", "c"), writing_of("d")]
    turn = writing.ok(writing.work("checkpoints/batches", checkpoints=several))
    assert (turn["seq"], turn["next"]["step"], turn["status"]) == (4, "write", "running")
    assert logs(writing) == [[], ["a"], ["a", "b", "c"], ["a", "b", "c", "d"]]
    assert writing.ok(writing.work("checkpoints", **writing_of("e")))["seq"] == 5


def test_the_last_may_end_the_run_and_a_whole_state_be_among_them(writing: Program) -> None:
    before: dict[str, Any] = writing.ok(writing.client.get(f"/api/runs/{writing.run}/checkpoints/1"))["state"]
    whole = {"step": "write", "state": {**before, "log": ["a", "z"]}, "next_step": "write"}
    several = [writing_of("a"), whole, writing_of("b", next_step="")]
    assert writing.ok(writing.work("checkpoints/batches", checkpoints=several))["status"] == "completed"
    assert logs(writing)[2:] == [["a", "z"], ["a", "z", "b"]]


def test_what_is_wrong_with_one_is_told_by_its_place_and_none_is_saved(writing: Program) -> None:
    before = traces(writing)
    wrong = writing_of("b") | {"ops": [{"op": "set", "field": "summary", "value": 7}]}
    answer = writing.work("checkpoints/batches", checkpoints=[writing_of("a"), wrong])
    told = refused(writing, answer, 422, code="invalid", before=before)
    assert told["errors"][0]["parameter"].startswith("/checkpoints/1/")
    nothing = writing.work("checkpoints/batches", checkpoints=[])
    assert "/checkpoints" in str(refused(writing, nothing, 422, code="invalid", before=before)["errors"])
    assert writing.ok(writing.work("checkpoints", **writing_of("a")))["seq"] == 2


def test_nothing_is_saved_where_a_gate_or_a_person_comes_between() -> None:
    program = Program()
    program.start()
    before = traces(program)
    draft = {"step": "draft", "ops": [{"op": "set", "field": "payment", "value": WIRE}]}
    report = {"step": "report", "ops": [{"op": "set", "field": "summary", "value": "Paid."}]}
    answer = program.work("checkpoints/batches", checkpoints=[draft, report])
    told = refused(program, answer, 409, code="out_of_turn", before=before)
    assert "after 1 of these the gate review comes" in told["detail"]
    assert not Gate.objects.filter(run_id=program.run).exists()
    assert program.ok(program.work("checkpoints/batches", checkpoints=[draft]))["next"]["kind"] == "gate"


def test_nothing_is_saved_where_somebody_asks_to_stop_between(writing: Program) -> None:
    Run.objects.filter(pk=writing.run).update(halt=True)
    before = traces(writing)
    answer = writing.work("checkpoints/batches", checkpoints=[writing_of("a"), writing_of("b")])
    told = refused(writing, answer, 409, code="out_of_turn", before=before)
    assert "the run is released, as somebody asked" in told["detail"]
    assert writing.ok(writing.work("heartbeats"))["halt"] is True
    assert Run.objects.get(pk=writing.run).status == "running"
    assert writing.ok(writing.work("checkpoints", **writing_of("a")))["status"] == "queued"


def signalled_run() -> Program:
    program = Program()
    program.start(signals=SIGNALS)
    return program


def send(program: Program, name: str, value: Any, key: str = "") -> Any:
    return program.post(f"runs/{program.run}/signals/{name}", {"value": value, "key": key})


def test_a_value_is_checked_by_the_schema_of_the_version_and_only_a_run_that_lives_is_waited_for() -> None:
    program = signalled_run()
    assert send(program, "delivered", {"by": 7}).json()["errors"][0]["parameter"] == "/value/by"
    assert send(program, "nothing", None).status_code == 422
    for by in ("ann", "bob"):
        assert send(program, "delivered", {"by": by}, key=by).status_code == 201
    assert send(program, "delivered", {"by": "ann"}, key="ann").status_code == 200  # sent twice
    address = f"/api/runs/{program.run}/signals/delivered"
    first, second = program.client.get(address).json()["items"]
    assert (first["value"], second["value"]) == ({"by": "ann"}, {"by": "bob"})
    assert program.client.get(address, {"after": first["id"]}).json()["items"] == [second]
    address = f"/api/runs/{program.run}/signals/stop"
    assert program.client.get(address)[AWAITS] == f"signals.{program.run}"
    Run.objects.filter(pk=program.run).update(status="cancelled")
    assert AWAITS not in program.client.get(address)


def test_a_waiting_program_hears_of_a_signal_as_soon_as_it_is_there_and_that_its_run_has_ended(web: str) -> None:
    signalled, ended = signalled_run(), signalled_run()
    waits = []
    for program in (signalled, ended):
        headers = {"Authorization": f"Bearer {program.sent}"}
        client = httpx.Client(base_url=web, headers=headers, timeout=PATIENCE)
        waits.append((client, Answered(client, f"/api/runs/{program.run}/signals/stop", wait=60)))
    for _, waiting in waits:
        waiting.join(0.25)
        assert waiting.answer is None
    send(signalled, "stop", None)
    Run.objects.get(pk=ended.run).cancel(by=actors.SYSTEM)
    assert [[each["value"] for each in waiting.told()["items"]] for _, waiting in waits] == [[None], []]
    for client, _ in waits:
        client.close()


def test_signals_that_cannot_be_are_refused_and_a_plan_without_any_is_the_same_as_before_there_were_any() -> None:
    program = Program()
    for signals, pointer in (({"Not a name": {}}, "/signals/Not a name"), ({"go": {"type": "nothing"}}, "/signals/go")):
        body = {"version": "1", "state_schema": SCHEMA, "steps": STEPS, "signals": signals}
        answer = program.post(f"agents/{program.agent}/versions", body)
        assert (answer.status_code, answer.json()["errors"][0]["parameter"]) == (422, pointer)
    program.register()
    assert b"signals" not in bytes(Plan.objects.get(agent=program.agent).body)
