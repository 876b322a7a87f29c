"""A program names only files that its team has: whoever knew a digest was handed the file by a gate of their own.

The rule is the store's (tests/checkpoints/store/test_named_files.py); here is what a program is told.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from approvals.models import Gate, Upload
from checkpoints import store
from checkpoints.models import Run
from checkpoints.values import artifacts
from tests.agents.api.test_doors import refusal
from tests.factories import ann

from .outside_program import ACTION, SCHEMA, STEPS, WIRE, Program, decide

Reference = dict[str, Any]


def theirs() -> Reference:
    """A file that a run of another team keeps."""
    return artifacts.keep(os.urandom(24), "application/pdf")


def faults(answer: Any) -> list[str]:
    told = refusal(answer, 422)
    assert all("file" in each["detail"] for each in told["errors"]), told
    return [each["parameter"] for each in told["errors"]]


@pytest.mark.parametrize(
    ("body", "at"),
    [
        (lambda file: {"actions": [{"id": "wire", "arguments": {**WIRE, "scan": file}}]}, "/actions/0/arguments/scan"),
        (
            lambda file: {"actions": [{"id": "wire", "arguments": WIRE}], "state": {"scans": [{"one": file}]}},
            "/state/scans/0/one",
        ),
    ],
    ids=["arguments", "state"],
)
def test_a_posted_gate_names_no_file_of_another_team(body: Any, at: str) -> None:
    program = Program()
    answer = program.post("gates", {"title": "Wire", **body(theirs())})
    assert faults(answer) == [at]
    assert not Run.objects.filter(team=program.team).exists()


def test_a_start_names_no_file_of_another_team() -> None:
    program = Program()
    program.register()
    answer = program.post("runs", {"agent": program.agent, "input": {"invoice": {"scan": theirs()}}})
    assert faults(answer) == ["/invoice/scan"]
    answer = program.post("runs", {"agent": program.agent, "input": {"invoice": {"scan": {"$artifact": 1}}}})
    assert faults(answer) == ["/invoice/scan"]


def test_a_plan_whose_state_starts_with_a_file_starts_no_run() -> None:
    """What nobody wrote is what the schema says, which the program wrote."""
    program = Program()
    properties = {**SCHEMA["properties"], "receipt": {"type": "object", "default": {"scan": theirs()}}}
    program.register(state_schema={**SCHEMA, "properties": properties})
    answer = program.post("runs", {"agent": program.agent, "input": {"invoice": {}}})
    assert faults(answer) == ["/receipt/scan"]


@pytest.mark.parametrize(
    ("op", "at"),
    [
        ({"op": "set", "field": "payment", "value": "scan"}, "/payment/scan"),
        ({"op": "append", "field": "feedback", "items": "scan"}, "/feedback/0/scan"),
        ({"op": "splice", "field": "feedback", "start": 0, "delete": 0, "items": "scan"}, "/feedback/0/scan"),
    ],
    ids=["set", "append", "splice"],
)
def test_a_save_names_no_file_of_another_team(op: dict[str, Any], at: str) -> None:
    program = Program()
    steps = [{**STEPS[0], "writes": ["payment", "feedback"]}, *STEPS[1:]]
    schema = {**SCHEMA, "properties": {**SCHEMA["properties"], "payment": {"type": "object"}}}
    program.register(steps=steps, state_schema=schema)
    told = program.ok(program.post("runs", {"agent": program.agent, "input": {"invoice": {"number": 7}}}))
    program.run = told["id"]
    program.claim()
    file = {"scan": theirs()}
    op = {**op, "value": file} if "value" in op else {**op, "items": [file]}
    before = program.row().seq
    assert faults(program.work("checkpoints", step="draft", ops=[op])) == [at]
    assert program.row().seq == before


def test_a_whole_state_names_no_file_of_another_team() -> None:
    program = Program()
    schema = {**SCHEMA, "properties": {**SCHEMA["properties"], "payment": {"type": "object"}}}
    program.register(state_schema=schema)
    told = program.ok(program.post("runs", {"agent": program.agent, "input": {"invoice": {"number": 7}}}))
    program.run = told["id"]
    state = {**program.claim()["state"], "payment": {"scan": theirs()}}
    assert faults(program.work("checkpoints", step="draft", state=state)) == ["/payment/scan"]


def test_the_arguments_that_a_gate_is_opened_with_name_none() -> None:
    program = Program()
    program.start()
    program.draft()
    action = {"id": "note", "tool": "bank.note", "arguments": {"scan": theirs()}}
    answer = program.work("gates", step="review", title="Wire", actions=[ACTION, action])
    assert faults(answer) == ["/actions/1/arguments/scan"]
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
    assert faults(answer) == ["/receipt/scan"]
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
