"""Programs elsewhere whose runs go on while their gates are open."""

from __future__ import annotations

from typing import Any

import pytest

from agents.remote import go_on_without_program
from approvals.models import Gate
from checkpoints.models import Run
from tests.agents.remote.outside_program import STEPS, WIRE, Program, decide
from tests.factories.driven_runs import state, trail

DRAFT, REVIEW, PAY, REPORT = STEPS
LEGAL = {"name": "legal", "kind": "gate", "waits": False, "reads": ["invoice"], "on_reject": "draft"}
NOTE = {"name": "note", "kind": "step", "reads": ["invoice"], "writes": ["log"], "code_hash": "bb" * 32}
PLAN = [DRAFT, {**REVIEW, "waits": False}, LEGAL, NOTE, PAY, REPORT]
ASKED: dict[str, Any] = {"title": "May it be paid?", "actions": [{"id": "ok", "title": "OK", "arguments": {}}]}


@pytest.fixture
def program() -> Program:
    """A program that has asked at both gates, and is to write a note."""
    made = Program()
    made.register(steps=PLAN)
    told = made.ok(made.post("runs", {"agent": made.agent, "input": {"invoice": {"number": 7}}}))
    made.run = told["id"]
    made.claim()
    made.draft()
    told = made.ask()
    assert (told["status"], told["gate"], told["next"]["step"]) == ("running", None, "legal")
    told = made.ok(made.work("gates", step="legal", **ASKED))
    assert (told["status"], told["gate"], told["next"]["step"]) == ("running", None, "note")
    return made


def gate(program: Program, step: str) -> Gate:
    """The newest gate of a step."""
    return Gate.objects.filter(run=program.run, step=step).latest("pk")


def note(program: Program) -> dict[str, Any]:
    """Save the note."""
    return program.ok(program.work("checkpoints", step="note", ops=[{"op": "append", "field": "log", "items": ["n"]}]))


def test_a_program_goes_on_while_its_gates_are_open_and_waits_for_the_one_that_it_needs(program: Program) -> None:
    told = note(program)
    review = gate(program, "review")
    assert (told["status"], told["gate"], told["next"]) == ("waiting", review.pk, None)
    refused = program.post(f"runs/{program.run}/claims", {"worker": "box:81"})
    assert (refused.status_code, refused.json()["gate"]) == (409, review.pk)
    assert program.client.get(f"/api/gates/{review.pk}/outcome").json()["run_status"] == "waiting"
    decide(review, "edit", arguments={"wire": {**WIRE, "amount": "99.00"}})
    outcome = program.client.get(f"/api/gates/{review.pk}/outcome").json()
    assert (outcome["run_status"], len(outcome["grants"])) == ("queued", 1)
    told = program.claim()
    assert (told["next"]["step"], told["state"]["payment"]["amount"]) == ("wire", "99.00")
    program.ok(program.report(program.begin()["id"]))
    told = program.ok(program.work("checkpoints", step="report", ops=[]))
    assert (told["status"], told["gate"]) == ("waiting", gate(program, "legal").pk)
    decide(gate(program, "legal"))
    assert program.claim()["status"] == "completed"


def test_a_decision_while_the_program_works_is_taken_up_with_its_result(program: Program) -> None:
    decide(gate(program, "review"), "edit", arguments={"wire": {**WIRE, "amount": "99.00"}})
    told = note(program)
    assert (told["status"], told["next"]["step"]) == ("running", "wire")
    run = Run.objects.get(pk=program.run)
    assert trail(run)[-2:] == [("step", "note"), ("answered", "review")]
    assert (state(run)["payment"]["amount"], state(run)["log"]) == ("99.00", ["n"])


def test_a_rejection_while_the_program_works_sends_it_back_and_withdraws_the_other_gate(program: Program) -> None:
    legal = gate(program, "legal")
    decide(gate(program, "review"), "reject", comment="No.", then="back", back_to="draft")
    told = note(program)
    assert (told["status"], told["next"]["step"]) == ("running", "draft")
    legal.refresh_from_db()
    assert legal.status == "withdrawn"
    again = program.work("checkpoints", step="note", ops=[])
    assert (again.status_code, again.json()["code"]) == (409, "out_of_turn")


def test_a_program_that_fails_the_run_leaves_no_gate_open(program: Program) -> None:
    told = program.ok(program.work("endings", status="failed", reason="no more"))
    assert told["status"] == "failed"
    assert not Gate.objects.open().filter(run=program.run).exists()


def test_a_run_whose_program_is_gone_ends_where_a_gate_beside_it_was_rejected(program: Program) -> None:
    note(program)
    decide(gate(program, "legal"), "reject", comment="No.", then="stop")
    Gate.objects.filter(run=program.run, step="legal").update(closed_at="2020-01-01T00:00:00Z")
    assert program.run in [run for run, _ in go_on_without_program.waiting()]
    assert go_on_without_program.go_on(program.run)
    assert Run.objects.get(pk=program.run).status == "cancelled"
    assert not Gate.objects.open().filter(run=program.run).exists()


@pytest.mark.parametrize(
    ("more", "at"), [({"kind": "step"}, "/steps/0/waits"), ({"on_expire": "note"}, "/steps/0/on_expire")]
)
def test_only_gates_go_on_and_they_do_not_jump_at_their_deadline(more: dict[str, Any], at: str) -> None:
    program = Program()
    steps = [{"name": "legal", "kind": "gate", "waits": False, **more}, {"name": "note"}]
    body = {"version": "1", "state_schema": {"type": "object", "properties": {}}, "steps": steps}
    refused = program.post(f"agents/{program.agent}/versions", body)
    assert refused.status_code == 422
    assert [fault["parameter"] for fault in refused.json()["errors"]] == [at]
