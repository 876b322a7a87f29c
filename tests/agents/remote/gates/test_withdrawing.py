"""A program takes back what it asks; nobody else does by that way, and nobody after it was decided."""

from __future__ import annotations

from typing import Any

from approvals.models import Gate
from checkpoints.models import Event
from tests.agents.api.test_doors import refusal
from tests.agents.remote.outside_program import Program, decide
from tests.factories import MEMBER, make_team, make_user
from tests.factories.tokens import bearing, make_token


def withdraw(program: Program, gate: Gate, *, key: str = "", **body: Any) -> Any:
    return program.post(f"gates/{gate.pk}/withdrawals", body, key=key)


def test_its_own_gate_is_withdrawn_and_its_run_ends() -> None:
    program = Program()
    gate = program.to_gate()
    told = program.ok(withdraw(program, gate, reason="The invoice was cancelled."))
    assert (told["status"], told["outcome"]["kind"], told["grants"]) == ("withdrawn", "withdrawn", [])
    assert told["outcome"]["feedback"] == f"{program.agent} withdrew it: “The invoice was cancelled.”"
    closed = Event.objects.get(kind="gate.withdrawn", subject=f"gate:{gate.pk}")
    assert closed.actor == f"agent:{program.agent}"
    assert program.claim()["status"] == "cancelled"


def test_the_same_request_again_is_answered_the_same() -> None:
    program = Program()
    gate = program.to_gate()
    first, again = (program.ok(withdraw(program, gate, key="k1")) for _ in range(2))
    assert first == again
    assert refusal(withdraw(program, gate), 409)["code"] == "withdrawn"


def test_what_is_decided_stays_decided() -> None:
    program = Program()
    gate = program.to_gate()
    decide(gate)
    told = refusal(withdraw(program, gate), 409)
    assert (told["code"], "already decided this" in told["detail"]) == ("already_decided", True)
    assert Gate.objects.get(pk=gate.pk).status == "decided"


def test_what_people_are_asked_after_a_fault_stays() -> None:
    program = Program()
    decide(program.to_gate())
    program.claim()
    effect = program.begin()
    told = program.ok(program.work(f"effects/{effect['id']}/results", status="unknown", error="A timeout."))
    gate = Gate.objects.get(pk=told["gate"])
    assert "Only their answer" in refusal(withdraw(program, gate), 409)["detail"]
    assert Gate.objects.get(pk=gate.pk).status == "open"


def test_nobody_takes_back_what_others_ask() -> None:
    team = make_team(may=MEMBER)
    program = Program(team=team)
    gate = program.to_gate()
    other = Program(team=team)
    refusal(withdraw(other, gate), 404)
    member = bearing(make_token(make_user("Bo Member", team))[1])
    answer = member.post(f"/api/gates/{gate.pk}/withdrawals", {}, content_type="application/json")
    assert "cancel the run by" in refusal(answer, 403)["detail"]
    assert Gate.objects.get(pk=gate.pk).status == "open"
