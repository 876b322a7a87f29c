"""Agents ask no more than people can read, and the same not again and again."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db.models import F

from approvals.errors import AskedTooOften
from approvals.models import Gate, Policy
from checkpoints.models import Event, Run
from checkpoints.values.canonical_json import decode_canonical
from tests.agents.remote.outside_program import WIRE, Program
from tests.factories import MEMBER, REJECTION, ann, decide, make_gate, make_policy, make_run, make_team, make_user
from tests.harness.signed_in_clients import signed_in

ACTION: dict[str, Any] = {"id": "wire", "tool": "bank.wire", "arguments": WIRE}


def limited(team: Group | None = None, **fields: Any) -> Policy:
    policy = make_policy(team or make_team(may=MEMBER), name="default")
    Policy.objects.filter(pk=policy.pk).update(**fields)
    return Policy.objects.get(pk=policy.pk)


def post(program: Program, **more: Any) -> Any:
    return program.post("gates", {"title": "Wire", "actions": [ACTION], **more})


def reject(gate: Gate, **said: Any) -> None:
    decide(gate, ann(gate.team), "reject", **{**REJECTION, **said})


def test_a_program_that_asks_more_than_the_policy_lets_it_is_told_when_to_come_again() -> None:
    """Two hundred gates at once were taken."""
    policy = limited(hourly=3)
    program = Program(team=policy.team)
    assert [post(program, title=f"Wire {n}").status_code for n in range(3)] == [201] * 3
    runs = Run.objects.filter(team=policy.team).count()
    refused = post(program, title="Wire 4")
    assert refused.status_code == 429
    assert refused.json()["code"] == "too_many_gates"
    assert 3590 < int(refused["Retry-After"]) <= 3601
    assert "has asked 3 gates within an hour, and the policy default allows no more" in refused.json()["detail"]
    assert Run.objects.filter(team=policy.team).count() == runs


def test_a_refused_gate_leaves_its_key_free_and_is_taken_an_hour_later() -> None:
    policy = limited(hourly=1)
    program = Program(team=policy.team)
    gate = Gate.objects.get(pk=post(program).json()["gate"])
    body = {"title": "Another", "actions": [ACTION]}
    assert program.post("gates", body, key="k1").status_code == 429
    Gate.objects.filter(pk=gate.pk).update(opened_at=F("opened_at") - timedelta(hours=1))
    assert program.post("gates", body, key="k1").status_code == 201


def test_the_cap_counts_by_agent_and_team() -> None:
    policy = limited(hourly=1)
    assert post(Program(team=policy.team)).status_code == 201
    assert post(Program(team=policy.team)).status_code == 201
    same = Program(team=limited(hourly=1).team)
    assert post(same).status_code == 201
    elsewhere = Program(team=limited(hourly=1).team, agent=same.agent)
    assert post(elsewhere).status_code == 201
    assert post(same).status_code == 429


def test_a_claimed_run_of_a_program_keeps_its_claim_and_opens_its_gate_later() -> None:
    policy = limited(hourly=1)
    first = Program(team=policy.team)
    first.to_gate()
    second = Program(team=policy.team, agent=first.agent)
    second.start()
    second.draft()
    refused = second.work("gates", step="review", title="Wire", actions=[{"id": "wire", "pointer": "/payment"}])
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_gates")
    Gate.objects.filter(team=policy.team).update(opened_at=F("opened_at") - timedelta(hours=1))
    assert second.ask()["gate"]


def test_a_policy_without_a_cap_has_none() -> None:
    program = Program(team=limited(hourly=None).team)
    assert [post(program).status_code for _ in range(4)] == [201] * 4


def test_a_question_about_a_fault_is_asked_beyond_the_cap() -> None:
    policy = limited(hourly=1)
    first = make_gate(policy=policy)
    plan = first.run.plan
    with pytest.raises(AskedTooOften):
        make_gate(run=make_run(team=policy.team, plan=plan), policy=policy)
    fault = make_gate(run=make_run(team=policy.team, plan=plan, first_step="pay"), policy=policy, kind="recovery")
    assert fault.status == Gate.Status.OPEN


def test_what_was_rejected_before_says_how_often_and_where() -> None:
    program = Program(team=limited(pause=None).team)
    gates = []
    for _ in range(3):
        gates.append(Gate.objects.get(pk=post(program).json()["gate"]))
        reject(gates[-1])
    last = Gate.objects.get(pk=post(program).json()["gate"])
    assert [gate.attempt for gate in gates] == [1, 2, 3]
    assert (last.attempt, last.rejected_before_id) == (4, gates[-1].pk)
    opened = Event.objects.get(kind="gate.opened", subject=last.subject)
    assert decode_canonical(bytes(opened.data))["attempt"] == 4


@pytest.mark.parametrize(
    ("other", "attempt"),
    [
        ({}, 2),
        ({"title": "In other words", "summary": "Please."}, 2),
        ({"actions": [{**ACTION, "arguments": {**WIRE, "amount": "1.00"}}]}, 1),
        ({"actions": [{**ACTION, "arguments": {**WIRE, "amount": "1.00"}}], "resource": "Invoice 7"}, 1),
        ({"actions": [{**ACTION, "tool": "bank.refund"}], "resource": "Invoice 7"}, 1),
    ],
)
def test_the_same_is_the_tool_with_the_arguments(other: dict[str, Any], attempt: int) -> None:
    """The same resource was enough: a refund of 47.50 counted as the rejected one of 89.00."""
    program = Program()
    reject(Gate.objects.get(pk=post(program, resource="Invoice 7").json()["gate"]))
    assert Gate.objects.get(pk=post(program, **other).json()["gate"]).attempt == attempt


def test_another_agent_or_team_has_not_been_rejected() -> None:
    program = Program()
    reject(Gate.objects.get(pk=post(program).json()["gate"]))
    assert Gate.objects.get(pk=post(Program(team=program.team)).json()["gate"]).attempt == 1
    assert Gate.objects.get(pk=post(Program(agent=program.agent)).json()["gate"]).attempt == 1


def test_what_was_rejected_twice_is_asked_again_after_a_pause_alone() -> None:
    program = Program(team=limited(pause=timedelta(minutes=10)).team)
    for _ in range(2):
        reject(Gate.objects.get(pk=post(program).json()["gate"]))
    refused = post(program)
    assert (refused.status_code, refused.json()["code"]) == (429, "rejected_before")
    assert 590 < int(refused["Retry-After"]) <= 601
    assert "The same was rejected 2 times" in refused.json()["detail"]
    assert post(program, actions=[{**ACTION, "arguments": {**WIRE, "to": "Somebody else"}}]).status_code == 201


def test_what_was_rejected_beside_something_that_was_not_counts_too() -> None:
    """One harmless action beside it, and the same was asked without end."""
    program = Program(team=limited(pause=timedelta(minutes=10)).team)
    both = [ACTION, {"id": "note", "tool": "notes.add", "arguments": {"text": "Paid."}}]
    refused = {"verdict": "reject", "reason": "Not our supplier."}
    for attempt in (1, 2):
        gate = Gate.objects.get(pk=post(program, actions=both).json()["gate"])
        assert gate.attempt == attempt
        decide(gate, ann(gate.team), "", verdicts={"wire": refused, "note": {"verdict": "approve"}})
        assert Gate.objects.get(pk=gate.pk).outcome.kind == "mixed"
    assert post(program).json()["code"] == "rejected_before"
    assert Gate.objects.get(pk=post(program, actions=both[1:]).json()["gate"]).attempt == 1


def test_the_pause_ends() -> None:
    policy = limited(pause=timedelta(minutes=10))
    program = Program(team=policy.team)
    for _ in range(2):
        reject(Gate.objects.get(pk=post(program).json()["gate"]))
    later = make_policy(policy.team, name="default", version=2)
    Policy.objects.filter(pk=later.pk).update(pause=timedelta(microseconds=1))
    assert Gate.objects.get(pk=post(program).json()["gate"]).attempt == 3


def test_what_a_person_sent_back_is_asked_again_at_once() -> None:
    """They asked for it."""
    program = Program()
    program.to_gate()
    for attempt in (1, 2, 3, 4):
        gate = Gate.objects.get(run=program.run, status="open")
        assert gate.attempt == attempt
        reject(gate, then="back")
        program.claim()
        program.draft()
        program.ask()


def test_the_page_says_how_often_the_same_was_rejected_and_by_whom_the_last_time() -> None:
    program = Program(team=limited(pause=None).team)
    for _ in range(2):
        first = Gate.objects.get(pk=post(program).json()["gate"])
        reject(first, comment="ACME is not our supplier.")
    gate = post(program).json()["gate"]
    page = signed_in(make_user("Rita Reviewer", program.team)).get(f"/gates/{gate}/").content.decode()
    page = " ".join(page.split())
    assert "Rejected before by Ann Okafor" in re.sub(r"<[^>]*>", "", page)
    assert "Rejected twice in all." in page
    assert f'href="/gates/{first.pk}/">gate {first.pk}</a>' in page
    assert "ACME is not our supplier." in page
    inbox = signed_in(make_user("Rita Reviewer", program.team)).get("/").content.decode()
    assert "Asked again after a rejection" in inbox


def test_the_page_says_whether_the_same_was_rejected_or_only_another_request_for_the_same_thing() -> None:
    """Another customer's first mail was called the second attempt, as both were about "1 mail"."""
    program = Program(team=limited(pause=timedelta(minutes=10)).team)
    other = {"actions": [{**ACTION, "arguments": {**WIRE, "amount": "1.00"}}]}
    first = Gate.objects.get(pk=post(program, resource="Invoice 7").json()["gate"])
    reject(first)
    again = Gate.objects.get(pk=post(program, resource="Invoice 7").json()["gate"])
    smaller = Gate.objects.get(pk=post(program, resource="Invoice 7", **other).json()["gate"])
    elsewhere = Gate.objects.get(pk=post(program, resource="Invoice 8", **other).json()["gate"])
    reader = signed_in(ann(program.team))
    pages = [reader.get(f"/gates/{gate.pk}/").content.decode() for gate in (again, smaller, elsewhere)]
    said = [re.search(r'id="attempt">(.*?)</div>', page, re.DOTALL) for page in pages]
    words = [" ".join(re.sub(r"<[^>]*>", " ", each[1]).split()) if each else "" for each in said]
    assert words[0].startswith("Rejected before by Ann Okafor")
    assert words[1].startswith("Ann Okafor rejected another request for")
    assert "Invoice 7" in words[1]
    assert words[2] == ""
    assert [gate.attempt for gate in (again, smaller, elsewhere)] == [2, 1, 1]


def test_what_a_run_asks_otherwise_after_a_rejection_is_its_second_attempt_and_was_not_rejected_before() -> None:
    program = Program()
    gate = program.to_gate()
    reject(gate, then="back")
    program.claim()
    program.draft(amount="60.00")
    second = Gate.objects.get(pk=program.ask()["gate"])
    assert (second.attempt, second.rejected_before_id) == (2, gate.pk)
    page = signed_in(ann(program.team)).get(f"/gates/{second.pk}/").content.decode()
    assert "Second attempt." in page
    assert "Rejected before by" not in page
