"""Agents ask no more than people can read, and whoever approves faster than anybody reads looks once more."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db.models import F
from django.test import override_settings

from approvals.errors import AskedTooOften, SecondLookNeeded
from approvals.models import Gate, Policy
from approvals.policy.second_look import SecondLook, streak
from checkpoints.models import Event, Run
from checkpoints.values.canonical_json import decode_canonical
from tests.agents.remote.outside_program import WIRE, Program
from tests.factories import MEMBER, REJECTION, ann, decide, make_gate, make_policy, make_run, make_team, make_user
from tests.factories.tokens import bearing, make_token
from tests.harness.signed_in_clients import form_of, signed_in

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
    refused = program.post("gates", {"title": "Wire 4", "actions": [ACTION]}, key="k1")
    assert refused.status_code == 429
    assert refused.json()["code"] == "too_many_gates"
    assert 3590 < int(refused["Retry-After"]) <= 3601
    assert "has asked 3 gates within an hour, and the policy default allows no more" in refused.json()["detail"]
    assert Run.objects.filter(team=policy.team).count() == runs
    Gate.objects.filter(team=policy.team).update(opened_at=F("opened_at") - timedelta(hours=1))
    assert program.post("gates", {"title": "Another", "actions": [ACTION]}, key="k1").status_code == 201


def test_the_cap_counts_by_agent_and_team() -> None:
    policy = limited(hourly=1)
    same = Program(team=policy.team)
    elsewhere = Program(team=limited(hourly=1).team, agent=same.agent)
    asked = [post(program).status_code for program in (same, Program(team=policy.team), elsewhere, same)]
    assert asked == [201, 201, 201, 429]


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


def test_a_question_about_a_fault_is_asked_beyond_the_cap() -> None:
    policy = limited(hourly=1)
    first = make_gate(policy=policy)
    plan = first.run.plan
    with pytest.raises(AskedTooOften):
        make_gate(run=make_run(team=policy.team, plan=plan), policy=policy)
    fault = make_gate(run=make_run(team=policy.team, plan=plan, first_step="pay"), policy=policy, kind="recovery")
    assert fault.status == Gate.Status.OPEN


@pytest.mark.parametrize(
    ("other", "attempt"),
    [
        ({}, 2),
        ({"title": "In other words", "summary": "Please."}, 2),
        ({"actions": [{**ACTION, "arguments": {**WIRE, "amount": "1.00"}}], "resource": "Invoice 7"}, 1),
        ({"actions": [{**ACTION, "tool": "bank.refund"}], "resource": "Invoice 7"}, 1),
    ],
)
def test_the_same_is_the_tool_with_the_arguments(other: dict[str, Any], attempt: int) -> None:
    """The same resource was enough: a refund of 47.50 counted as the rejected one of 89.00."""
    program = Program()
    reject(Gate.objects.get(pk=post(program, resource="Invoice 7").json()["gate"]))
    assert Gate.objects.get(pk=post(program, **other).json()["gate"]).attempt == attempt
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


def test_what_a_person_sent_back_is_asked_again_at_once() -> None:
    """They asked for it."""
    program = Program()
    program.to_gate()
    for attempt in (1, 2, 3):
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
    last = Gate.objects.get(pk=gate)
    assert (last.attempt, last.rejected_before_id) == (3, first.pk)
    page = signed_in(make_user("Rita Reviewer", program.team)).get(f"/gates/{gate}/").content.decode()
    page = " ".join(page.split())
    assert "Rejected before by Ann Okafor" in re.sub(r"<[^>]*>", "", page)
    assert "Rejected twice in all." in page
    assert f'href="/gates/{first.pk}/">gate {first.pk}</a>' in page
    assert "ACME is not our supplier." in page
    inbox = signed_in(make_user("Rita Reviewer", program.team)).get("/").content.decode()
    assert "Asked again after a rejection" in inbox


NOW = datetime(2026, 11, 23, 12, 0, 0, tzinfo=UTC)


def approvals(number: int, *, pause: float, ago: float = 1.0) -> list[tuple[datetime, bool]]:
    """So many, the newest first."""
    return [(NOW - timedelta(seconds=ago + pause * n), False) for n in range(number)]


@pytest.mark.parametrize(
    ("found", "made"),
    [
        (approvals(10, pause=1), SecondLook("You approved 10 in 9 seconds.", 10, 9)),
        (approvals(9, pause=1), None),
        (approvals(10, pause=5), None),
        (approvals(10, pause=1, ago=601), None),
        (
            [*approvals(10, pause=1)[:8], *approvals(2, pause=60, ago=300)],
            SecondLook("You approved 10 in 359 seconds.", 10, 359),
        ),
        ([*approvals(3, pause=1), *approvals(7, pause=60, ago=300)], None),
        ([*approvals(5, pause=1), (NOW - timedelta(seconds=8), True), *approvals(9, pause=1, ago=9)], None),
    ],
)
@override_settings(HOLDPOINT_STREAK=10, HOLDPOINT_STREAK_SECONDS=5.0)
def test_a_streak_is_many_approvals_each_too_short_to_have_read(found: Any, made: SecondLook | None) -> None:
    assert streak(found, now=NOW) == made


of_three = override_settings(HOLDPOINT_STREAK=3, HOLDPOINT_STREAK_SECONDS=5.0)  # make a streak


def queue(number: int) -> tuple[Group, User, list[Gate]]:
    team = make_team(may=MEMBER)
    return team, make_user("Rita Reviewer", team), [make_gate(team=team) for _ in range(number)]


@of_three
def test_the_eleventh_fast_approval_needs_a_second_look_and_the_next_ones_none() -> None:
    """Fifteen approvals in nine seconds passed unremarked."""
    team, rita, gates = queue(11)
    for gate in gates[:2]:
        decide(gate, rita, "reject", comment="No.", then="stop")
        decide(gates.pop(), ann(team))
    for gate in gates[2:5]:
        assert decide(gate, rita).second_look is False, "rejections make no streak, and neither do others' approvals"
    with pytest.raises(SecondLookNeeded, match=r"You approved 3 in \d+ seconds?\. Look once more"):
        decide(gates[5], rita)
    refused = decode_canonical(bytes(Event.objects.get(kind="decision.refused", subject=gates[5].subject).data))
    assert (refused["kind"], refused["streak"]) == ("second_look", 3)
    decide(gates[5], rita, second_look=True)
    decide(gates[6], rita)
    first, looked = (Event.objects.get(kind="gate.decided", subject=gates[at].subject) for at in (2, 5))
    assert decode_canonical(bytes(looked.data))["second_look"] is True
    assert "second_look" not in decode_canonical(bytes(first.data))
    decide(gates[7], rita)
    with pytest.raises(SecondLookNeeded):
        decide(gates[8], rita)
    decide(gates[8], rita, "reject", comment="No.", then="stop")
    assert Gate.objects.get(pk=gates[8].pk).outcome.kind == "rejected"


@of_three
def test_a_token_of_a_person_is_asked_too() -> None:
    _, rita, gates = queue(4)
    _, sent = make_token(rita, "gates:decide", "gates:read")
    program = bearing(sent)
    for gate in gates[:3]:
        decide(gate, rita)
    body = {"seen": bytes(gates[3].standing().digest).hex(), "verdict": "approve"}
    address = f"/api/gates/{gates[3].pk}/decisions"
    refused = program.post(address, body, content_type="application/json")
    assert (refused.status_code, refused.json()["code"]) == (422, "second_look")
    assert [each["parameter"] for each in refused.json()["errors"]] == ["/second_look"]
    assert program.post(address, body | {"second_look": True}, content_type="application/json").status_code == 201


@of_three
def test_the_page_draws_the_box_and_takes_it() -> None:
    _, rita, gates = queue(4)
    reader = signed_in(rita)
    assert "second_look" not in reader.get(f"/gates/{gates[3].pk}/").content.decode()
    for gate in gates[:3]:
        decide(gate, rita)
    page = reader.get(f"/gates/{gates[3].pk}/").content.decode()
    assert re.search(r"You approved 3 in \d+ seconds?\. Look once more\.", page)
    form = form_of(gates[3])
    refused = reader.post(f"/gates/{gates[3].pk}/decisions/", form)
    assert refused.status_code == 422
    assert 'name="second_look"' in refused.content.decode()
    assert Gate.objects.get(pk=gates[3].pk).status == Gate.Status.OPEN
    assert reader.post(f"/gates/{gates[3].pk}/decisions/", form | {"second_look": "yes"}).status_code == 303
    assert Gate.objects.get(pk=gates[3].pk).status == Gate.Status.DECIDED
