"""What does not fit is refused with what to do about it, and leaves nothing behind.

A program names only files that its team has: whoever knew a digest was handed the file by a gate of their own. The rule
is the store's (tests/checkpoints/store/test_named_files.py).
"""

from __future__ import annotations

import os
from datetime import datetime
from typing import Any

import pytest

from agents.models import Answer, Effect
from agents.remote import plans
from approvals.models import Gate, Upload
from approvals.schema import validate
from checkpoints import store
from checkpoints.models import Checkpoint, Event, Plan, Run
from checkpoints.values import artifacts
from tests.agents.api.test_doors import refusal
from tests.agents.remote.outside_program import ACTION, SCHEMA, STEPS, WIRE, Program, decide
from tests.factories import MEMBER, ann, make_run, make_team

NOT_PLANNED: list[tuple[dict[str, Any], str, str]] = [
    ({"steps": []}, "/steps", "at least 1"),
    ({"steps": [STEPS[0], STEPS[0]]}, "/steps/1/name", "twice"),
    ({"steps": [{"name": "a", "reads": ["nothing"]}]}, "/steps/0/reads", "which is not a field"),
    ({"steps": [{"name": "a", "responds": "nothing"}]}, "/steps/0/responds", "which is not a field"),
    ({"steps": [{"name": "a", "action": "payment"}]}, "/steps/0/action", "let it read that field"),
    (
        {"steps": [{"name": "a", "kind": "gate", "feedback": "nothing"}]},
        "/steps/0/feedback",
        "is not in the state's schema",
    ),
    ({"steps": [{"name": "a", "kind": "effect", "writes": ["receipt"]}]}, "/steps/0", "undo"),
    ({"steps": STEPS[:1] + STEPS[2:]}, "/steps", "No gate allows"),
    ({"state_schema": {"type": "array"}}, "/state_schema", "an object"),
    ({"state_schema": {"type": 7}}, "/state_schema", "not valid"),
    ({"state_schema": {"properties": {"_x": {}}}}, "/state_schema/properties/_x", "a field's name"),
    ({"state_schema": {"properties": {"model_fields": {}}}}, "/state_schema/properties/model_fields", "begin"),
    ({"version": ""}, "/version", "match"),
    ({"format": 2}, "/format", "Input should be 1"),
    ({"steps": [{"name": "a", "ends": True, "title": "Wire\u202e"}]}, "/steps", "one line of plain words"),
    ({"steps": [{"name": "a", "waits": False}]}, "/steps/0/waits", "which is for gates"),
    (
        {"steps": [{"name": "a", "kind": "gate", "waits": False, "on_expire": "b"}, {"name": "b"}]},
        "/steps/0/on_expire",
        "leave on_expire out",
    ),
    (
        {"state_schema": {"properties": {f"f{n}": {} for n in range(plans.FIELDS + 1)}}},
        "/state_schema/properties",
        f"has more than {plans.FIELDS} fields; put some into an object",
    ),
    ({"steps": [{"name": "a", "retries": 3}]}, "/steps/0/retries", "not permitted"),
    ({"state_schema": {"$schema": "https://json-schema.org/draft/2099-01/schema"}}, "/state_schema", "no version"),
]
NOT_SAVED: list[tuple[dict[str, Any], str]] = [
    ({}, "/"),
    ({"ops": [], "state": {}}, "/"),
    ({"ops": [{"op": "set", "field": "nothing", "value": 1}]}, "/nothing"),
    ({"ops": [{"op": "set", "field": "summary", "value": "x"}]}, "/summary"),  # not what the step writes
    ({"ops": [{"op": "set", "field": "payment", "value": WIRE, "at": 1}]}, "/ops/0/at"),
    ({"ops": [{"op": "append", "field": "log"}]}, "/ops/0/items"),
    ({"ops": [{"op": "set", "field": "payment", "value": {"to": "ACME"}}]}, "/payment"),
    ({"ops": [{"op": "set", "field": "payment", "value": WIRE}] * 2}, "/ops/1"),
    ({"ops": [{"op": "append", "field": "payment", "items": [1]}]}, "/payment"),
    ({"state": {"payment": WIRE}}, "/state/"),
    ({"ops": [], "next_step": "wire"}, "/next_step"),
    ({"ops": [], "next_step": ""}, "/next_step"),
]
NOT_ASKED: list[tuple[dict[str, Any], str, str]] = [
    ({"actions": []}, "/actions", "needs at least one action"),
    ({"actions": [ACTION, ACTION]}, "/actions/1/id", "'wire' is used twice"),
    ({"actions": [{**ACTION, "pointer": "/nothing"}]}, "/actions/0/pointer", "there is nothing at /nothing"),
    ({"actions": [{**ACTION, "pinned": ["/to", "/iban"]}]}, "/actions/0/pinned/1", "there is nothing at /iban"),
    ({"actions": [{**ACTION, "pinned": ["amount"]}]}, "/actions/0/pinned/0", "a pin must be a JSON Pointer"),
    ({"quotes": [{"label": "Marit", "pointer": "/mail"}]}, "/quotes/0/pointer", "there is nothing at /mail"),
    ({"actions": [{**ACTION, "schema": {"required": ["iban"]}}]}, "/actions/0/arguments", "'iban' is a required"),
    ({"actions": [{**ACTION, "schema": {"type": "nothing"}}]}, "/actions/0/schema", "not valid"),
    ({"actions": [{**ACTION, "effect": "report"}]}, "/", "report"),
    ({"actions": [{**ACTION, "tool": "wi\u202ere"}]}, "/actions/0/tool", "not an identifier"),
    ({"risk": "none"}, "/risk", "'none' is none of low, medium, high, critical"),
    ({"actions": [{**ACTION, "verdicts": ["maybe"]}]}, "/actions/0/verdicts/0", "'maybe' is none of approve"),
    ({"actions": [{**ACTION, "tittle": "x"}]}, "/actions/0/tittle", "not permitted"),
]


def traces(program: Program) -> tuple[int, ...]:
    """How many rows there are of all that a call could leave behind."""
    mine = {"run": program.run}
    return (
        Run.objects.filter(team=program.team).count(), Checkpoint.objects.filter(run_id=program.run).count(),
        Gate.objects.filter(**mine).count(), Effect.objects.filter(**mine).count(),
        Event.objects.filter(run_id=program.run).count(), Plan.objects.filter(agent=program.agent).count(),
        Answer.objects.count(),
    )  # fmt: skip


def refused(program: Program, answer: Any, status: int, *, code: str = "", before: tuple[int, ...]) -> dict[str, Any]:
    """The problem of an answer, which left nothing behind."""
    told = refusal(answer, status)
    assert told["code"] == code
    assert traces(program) == before
    return told


@pytest.fixture
def started() -> Program:
    """A program that has begun a run."""
    program = Program()
    program.start()
    return program


def test_a_plan_that_cannot_work() -> None:
    program = Program()
    for spoilt, place, said in NOT_PLANNED:
        body = {"version": "1", "state_schema": SCHEMA, "steps": STEPS, **spoilt}
        told = refusal(program.post(f"agents/{program.agent}/versions", body), 422)
        assert any(each["parameter"] == place and said in each["detail"] for each in told["errors"]), told
    assert not Plan.objects.filter(agent=program.agent).exists()


def test_a_start_of_what_nobody_registered_with_what_does_not_fit_or_of_another_agent() -> None:
    program = Program()
    program.register()
    before = traces(program)
    answer = program.post("runs", {"agent": program.agent, "version": "99", "input": {"invoice": {}}})
    told = refused(program, answer, 422, code="invalid", before=before)
    assert f"POST /api/agents/{program.agent}/versions" in told["detail"]
    inputs: list[tuple[dict[str, Any], str]] = [
        ({}, "/invoice"), ({"invoice": 7}, "/invoice"), ({"invoice": {}, "other": 1}, "/other"),
        ({"invoice": {}, "payment": {"to": "ACME", "amount": "1e9"}}, "/payment/amount"),
    ]  # fmt: skip
    for input, place in inputs:
        told = refused(program, program.post("runs", {"input": input}), 422, code="invalid", before=before)
        assert place in [each["parameter"] for each in told["errors"]]
    plan = {"version": "1", "state_schema": SCHEMA, "steps": STEPS}
    for answer in (
        program.post("runs", {"agent": "another", "input": {}}),
        program.post("agents/another/versions", plan),
    ):
        assert "This token is for the agent" in refusal(answer, 403)["detail"]
    ours = Program(agent="refunds")
    assert "is an agent of this server" in refusal(ours.post("agents/refunds/versions", plan), 422)["detail"]


def test_a_version_whose_plan_changed_under_its_runs(started: Program) -> None:
    before = traces(started)
    body = {"version": "1", "state_schema": SCHEMA, "steps": [STEPS[0]]}
    answer = started.post(f"agents/{started.agent}/versions", body)
    assert refused(started, answer, 422, code="invalid", before=before)["errors"][0]["parameter"] == "/version"


def test_a_run_that_somebody_has_that_waits_for_people_or_whose_agent_lives_here(started: Program) -> None:
    answer = started.post(f"runs/{started.run}/claims", {})
    told = refused(started, answer, 409, code="not_claimable", before=traces(started))
    assert "box:81 has the run" in told["detail"]
    assert datetime.fromisoformat(told["lease_until"]) == started.row().lease_until

    program = Program()
    gate = program.to_gate()
    before = traces(program)
    told = refused(program, program.post(f"runs/{program.run}/claims", {}), 409, code="not_claimable", before=before)
    assert f"/api/gates/{gate.pk}/outcome?wait=" in told["detail"]
    assert told["gate"] == gate.pk
    stale = program.work("checkpoints", step="draft", ops=[])
    assert refused(program, stale, 409, code="stale_token", before=before)["gate"] == gate.pk

    team = make_team(may=MEMBER)
    run = make_run(team=team)
    program = Program(team=team, agent=run.plan.agent, run=run.pk)
    answer = program.post(f"runs/{run.pk}/claims", {})
    told = refused(program, answer, 409, code="not_external", before=traces(program))
    assert "runs on this server" in told["detail"]


def test_a_stale_token(started: Program) -> None:
    before = traces(started)
    started.token = 99
    bodies: dict[str, dict[str, Any]] = {
        "heartbeats": {}, "releases": {}, "checkpoints": {"step": "draft", "ops": []},
        "checkpoints/batches": {"checkpoints": [{"step": "draft", "ops": []}]},
        "gates": {"step": "review", "title": "x", "actions": [ACTION]}, "effects": {"step": "wire"},
        "failures": {"step": "draft", "error": "x"}, "endings": {"status": "failed"},
    }  # fmt: skip
    for what, body in bodies.items():
        told = refused(started, started.work(what, **body), 409, code="stale_token", before=before)
        assert "Claim the run" in told["detail"], what


def test_an_end_where_the_plan_goes_on_and_a_second_end(started: Program) -> None:
    before = traces(started)
    told = refused(started, started.work("endings", status="completed"), 422, code="invalid", before=before)
    assert told["errors"][0]["parameter"] == "/status"
    assert started.ok(started.work("endings", status="failed", reason="It broke."))["status"] == "failed"
    before = traces(started)
    told = refused(started, started.work("endings", status="failed"), 409, code="run_ended", before=before)
    assert "It broke." in told["detail"]
    assert "It has ended" in refusal(started.post(f"runs/{started.run}/claims", {}), 409)["detail"]


def test_what_does_not_fit_is_named_and_not_saved(started: Program) -> None:
    before = traces(started)
    for body, place in NOT_SAVED:
        told = refused(started, started.work("checkpoints", step="draft", **body), 422, code="invalid", before=before)
        assert told["errors"][0]["parameter"].startswith(place), told
    told = refused(
        started, started.work("checkpoints", step="report", ops=[], key="k"), 409, code="out_of_turn", before=before
    )
    assert told["detail"].startswith("The step draft comes next, not report")
    ops = [{"op": "set", "field": "payment", "value": WIRE}]
    assert started.work("checkpoints", step="draft", ops=ops, key="k").status_code == 201, "its key is free"


def test_what_is_too_large(started: Program, settings: Any) -> None:
    """It was told how large it may be, and not what to do."""
    settings.HOLDPOINT_STATE_LIMIT = 2000
    before = traces(started)
    ops = [{"op": "set", "field": "payment", "value": {**WIRE, "to": "x" * 3000}}]
    posted = {"title": "Wire", "actions": [{"id": "wire", "arguments": {"text": "x" * 3000}}]}
    for answer in (
        started.work("checkpoints", step="draft", ops=ops),
        started.post("runs", {"input": {"invoice": {"text": "x" * 3000}}}),
        started.post("gates", posted),
    ):
        assert "write less" in refused(started, answer, 422, code="invalid", before=before)["detail"]


def test_fields_that_each_refer_to_too_much_are_refused_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each was asked by itself, and for a thousand of them that held the server up for an hour."""
    monkeypatch.setattr(validate, "WORK", 20_000)
    program = Program()
    double = {f"a{n}": {"anyOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(40)} | {"a40": {"type": "null"}}
    fields = {f"f{n}": {"not": {"$ref": "#/$defs/a0"}} for n in range(100)}
    refuses = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(40)} | {"a40": {}}
    for definitions in (double, refuses):
        schema = {"type": "object", "properties": fields, "$defs": definitions}
        body = {"version": "1", "state_schema": schema, "steps": [{"name": "a", "ends": True}]}
        told = refusal(program.post(f"agents/{program.agent}/versions", body), 422)
        assert told["errors"][0]["parameter"].startswith("/state_schema")
    assert not Plan.objects.filter(agent=program.agent).exists()


def asked(schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An action with one argument, and what its schema says of that."""
    return {"id": "wire", "arguments": {"n": 1}, "schema": {"properties": {"n": schema}}, **more}


NOT_POSTED: list[tuple[dict[str, Any], str, str]] = [
    ({"actions": []}, "/actions", "needs at least one action"),
    ({"actions": [{"id": "a", "arguments": {}}, {"id": "a", "arguments": {}}]}, "/actions/1/id", "used twice"),
    ({"actions": [{"id": "ask", "arguments": {}}]}, "/actions/0/id", "reserved name"),
    ({"state": {"wire": 1}}, "/state/wire", "name of an action"),
    ({"state": {"a/b": 1}}, "/state/a~1b", "letters, digits"),
    ({"actions": [asked({"type": "string"})]}, "/actions/0/arguments/n", "string"),
    ({"actions": [asked({"type": "texture"})]}, "/actions/0/schema", "not valid"),
    ({"actions": [asked({"$ref": "https://example.com/n"})]}, "/actions/0/schema", "refer to #/$defs/"),
    ({"actions": [asked({}, pinned=["/m"])]}, "/actions/0/pinned/0", "there is nothing at /m"),
]


def test_what_cannot_be_asked_or_posted(started: Program) -> None:
    started.draft()
    before = traces(started)
    for spoilt, place, said in NOT_ASKED:
        answer = started.work("gates", **{"step": "review", "title": "Wire", "actions": [ACTION], **spoilt})
        told = refused(started, answer, 422, code="invalid", before=before)
        assert any(each["parameter"] == place and said in each["detail"] for each in told["errors"]), told
    for spoilt, place, said in NOT_POSTED:
        body = {"title": "Wire", "actions": [{"id": "wire", "arguments": WIRE}], **spoilt}
        told = refused(started, started.post("gates", body), 422, code="invalid", before=before)
        assert any(each["parameter"] == place and said in each["detail"] for each in told["errors"]), told
    told = refused(started, started.work("effects", step="wire"), 409, code="out_of_turn", before=before)
    assert "The gate review comes next" in told["detail"]


def test_a_result_of_an_effect_that_was_not_begun_that_does_not_fit_or_that_is_reported_twice() -> None:
    program, other = Program(), Program()
    for each in (program, other):
        each.to_effect()
    refusal(program.report(2**40), 404)
    assert "you may not see it" in refusal(program.report(other.begin()["id"]), 404)["detail"]
    effect = program.begin()["id"]
    before = traces(program)
    spoilt: list[tuple[dict[str, Any], str]] = [
        ({"writes": {"summary": "x"}}, "/summary"), ({"writes": {"receipt": 7}}, "/receipt"),
        ({"status": "failed"}, "/error"),
    ]  # fmt: skip
    for body, place in spoilt:
        told = refused(program, program.report(effect, **body), 422, code="invalid", before=before)
        assert told["errors"][0]["parameter"] == place
    program.token += 1
    refused(program, program.report(effect), 409, code="no_grant", before=before)
    program.token -= 1
    program.ok(program.report(effect))
    before = traces(program)
    for again in ({}, {"status": "failed", "error": "No."}):
        told = refused(program, program.report(effect, **again), 409, code="reported_before", before=before)
        assert "is done already" in told["detail"]


Reference = dict[str, Any]


def theirs() -> Reference:
    """A file that a run of another team keeps."""
    return artifacts.keep(os.urandom(24), "application/pdf")


def file_faults(answer: Any) -> list[str]:
    told = refusal(answer, 422)
    assert all("file" in each["detail"] for each in told["errors"]), told
    return [each["parameter"] for each in told["errors"]]


def test_a_posted_gate_names_no_file_of_another_team() -> None:
    program, file = Program(), theirs()
    wire = {"id": "wire", "arguments": {**WIRE, "scan": file}}
    assert file_faults(program.post("gates", {"title": "Wire", "actions": [wire]})) == ["/actions/0/arguments/scan"]
    body = {"title": "Wire", "actions": [{**wire, "arguments": WIRE}], "state": {"scans": [{"one": file}]}}
    assert file_faults(program.post("gates", body)) == ["/state/scans/0/one"]
    assert not Run.objects.filter(team=program.team).exists()


def test_a_start_names_no_file_of_another_team_nor_does_what_its_plan_says_that_it_starts_with() -> None:
    """What nobody wrote is what the schema says, which the program wrote."""
    program = Program()
    program.register()
    for file in (theirs(), {"$artifact": 1}):
        assert file_faults(program.post("runs", {"agent": program.agent, "input": {"invoice": {"scan": file}}})) == [
            "/invoice/scan"
        ]
    properties = {**SCHEMA["properties"], "receipt": {"type": "object", "default": {"scan": theirs()}}}
    program.register(state_schema={**SCHEMA, "properties": properties})
    assert file_faults(program.post("runs", {"agent": program.agent, "input": {"invoice": {}}})) == ["/receipt/scan"]


def test_a_save_and_a_gate_name_no_file_of_another_team() -> None:
    program, file = Program(), {"scan": theirs()}
    steps = [{**STEPS[0], "writes": ["payment", "feedback"]}, *STEPS[1:]]
    schema = {**SCHEMA, "properties": {**SCHEMA["properties"], "payment": {"type": "object"}}}
    program.register(steps=steps, state_schema=schema)
    program.run = program.ok(program.post("runs", {"agent": program.agent, "input": {"invoice": {}}}))["id"]
    state = program.claim()["state"]
    ops: list[tuple[dict[str, Any], str]] = [
        ({"op": "set", "field": "payment", "value": file}, "/payment/scan"),
        ({"op": "append", "field": "feedback", "items": [file]}, "/feedback/0/scan"),
        ({"op": "splice", "field": "feedback", "start": 0, "delete": 0, "items": [file]}, "/feedback/0/scan"),
    ]
    for op, at in ops:
        assert file_faults(program.work("checkpoints", step="draft", ops=[op])) == [at]
    assert file_faults(program.work("checkpoints", step="draft", state={**state, "payment": file})) == ["/payment/scan"]
    assert program.row().seq == 1
    program.draft()
    action = {"id": "note", "tool": "bank.note", "arguments": file}
    answer = program.work("gates", step="review", title="Wire", actions=[ACTION, action])
    assert file_faults(answer) == ["/actions/1/arguments/scan"]
    assert not Gate.objects.filter(run=program.run).exists()


@pytest.mark.parametrize("lost", [False, True], ids=["under the claim", "after the claim was lost"])
def test_what_an_effect_gave_names_none(lost: bool) -> None:
    program = Program()
    gate = program.to_gate()
    decide(gate, by=ann(program.team))
    program.claim()
    effect = program.begin()["id"]
    if lost:
        Run.objects.filter(pk=program.run).update(status="waiting")
    answer = program.report(effect, writes={"receipt": {"scan": theirs()}})
    assert file_faults(answer) == ["/receipt/scan"]
    program.ok(program.report(effect))


def test_what_people_uploaded_at_a_gate_of_the_run_may_be_named_and_named_again() -> None:
    program = Program()
    gate = program.to_gate()
    file = theirs()
    Upload.objects.create(gate=gate, user=ann(program.team), digest=file["$artifact"], size=file["size"])
    decide(gate, by=ann(program.team))
    program.claim()
    receipt = {"scan": file}
    program.ok(program.report(program.begin()["id"], writes={"receipt": receipt}))
    Upload.objects.all().delete()
    op = {"op": "set", "field": "summary", "value": "Paid."}
    program.ok(program.work("checkpoints", step="report", ops=[op]))
    assert store.load(Run.objects.get(pk=program.run)).state["receipt"] == receipt
