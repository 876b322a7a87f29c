"""kill -9 of the web process between the statements and around every commit of each call: all of it landed, or none.

The same call sent again with its key goes on: it is done once, and answered as it would have been. A bulk decision is a
transaction for each gate, so that some of its gates may be decided; sent again it decides the rest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import Any

import pytest

from agents.models import Answer, Client, Effect
from approvals.models import BulkOrder, Decision, Gate, Grant, Outcome, Proposal
from checkpoints.audit import verify_runs
from checkpoints.models import Checkpoint, Event, Hold, Plan, Run
from tests.agents.remote.outside_program import ACTION, SCHEMA, STEPS, WIRE, Program, decide
from tests.approvals.bulk.bulk_forms import REASON, alike
from tests.factories import MEMBER, ann, make_policy, make_team
from tests.factories.tokens import make_token
from tests.harness.services import Talking

MAY = ("approvals.decide_gate", "checkpoints.rewind_run", *MEMBER)
OPS = [{"op": "set", "field": "payment", "value": WIRE}]
WIRES = {"title": "Wire", "actions": [{"id": "wire", "arguments": WIRE}]}
DONE = {"status": "done", "writes": {"receipt": {"id": "tx_1"}}}


@dataclass(frozen=True)
class Call:
    """One request about a program's run, and who sends it."""

    program: Program
    address: str
    body: dict[str, Any]
    sent: str = ""
    in_parts: bool = False  # one transaction after the other

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.sent or self.program.sent}", "Idempotency-Key": self.program.agent}

    def landed(self) -> dict[str, Any]:
        """All that it could have left behind."""
        team, run = self.program.team, Run.objects.filter(team=self.program.team)
        of_team = {"gate__team": team}
        return {
            "runs": list(run.order_by("pk").values_list("status", "token", "seq", "next_step", "attempts")),
            "checkpoints": Checkpoint.objects.filter(run__in=run).count(),
            "gates": list(Gate.objects.filter(team=team).order_by("pk").values_list("status", "version", "proposal")),
            "proposals": Proposal.objects.filter(**of_team).count(),
            "decisions": list(Decision.objects.filter(**of_team).order_by("pk").values_list("counts", flat=True)),
            "bulk": BulkOrder.objects.filter(user__groups=team).exclude(finished_at=None).count(),
            "outcomes": Outcome.objects.filter(**of_team).count(),
            "grants": Grant.objects.filter(outcome__gate__team=team).count(),
            "holds": Hold.objects.filter(run__in=run).count(),
            "effects": list(Effect.objects.filter(run__in=run).order_by("pk").values_list("status", "attempts")),
            "clients": list(Client.objects.filter(run__in=run).values_list("deferred")),
            "plans": Plan.objects.filter(agent=self.program.agent).count(),
            "events": sorted(Event.objects.filter(run_id__in=run.values("pk")).values_list("kind", flat=True)),
        }


def at_work() -> Program:
    """A program that has claimed its run."""
    program = Program(team=make_team(may=MAY))
    program.start()
    return program


def allowed() -> Program:
    """One whose payment was approved, and which has claimed its run again."""
    program = Program(team=make_team(may=MAY))
    program.to_effect()
    return program


def withdrawing() -> Call:
    program = Program(team=make_team(may=MAY))
    return Call(program, f"/api/gates/{program.to_gate().pk}/withdrawals", {})


def working(noun: str, **body: Any) -> Callable[[], Call]:
    """A call about a run at its first step."""

    def made() -> Call:
        program = at_work()
        return Call(program, f"/api/runs/{program.run}/{noun}", {"token": program.token, **body})

    return made


def new(address: str, body: dict[str, Any], *, registered: bool = False) -> Callable[[], Call]:
    """A call of a program that has no run."""

    def made() -> Call:
        program = Program(team=make_team(may=MAY))
        if registered:
            program.register()
        return Call(program, address.format(agent=program.agent), body)

    return made


def claim_decided() -> Call:
    program = at_work()
    program.draft()
    decide(Gate.objects.get(pk=program.ask()["gate"]), "edit", arguments={"wire": {**WIRE, "amount": "1.00"}})
    return Call(program, f"/api/runs/{program.run}/claims", {})


def ask() -> Call:
    program = at_work()
    program.draft()
    body = {"token": program.token, "step": "review", "title": "Wire 120.00", "actions": [ACTION]}
    return Call(program, f"/api/runs/{program.run}/gates", body)


def beginning() -> Call:
    program = allowed()
    return Call(program, f"/api/runs/{program.run}/effects", {"token": program.token, "step": "wire"})


def reporting() -> Call:
    program = allowed()
    address = f"/api/runs/{program.run}/effects/{program.begin()['id']}/results"
    return Call(program, address, {"token": program.token, **DONE})


def person(program: Program, address: str, **body: Any) -> Call:
    """A call of somebody of the team."""
    return Call(program, address, body, make_token(ann(program.team))[1])


def deciding() -> Call:
    program = at_work()
    program.draft()
    gate = Gate.objects.get(pk=program.ask()["gate"])
    seen = bytes(gate.standing().digest).hex()
    return person(program, f"/api/gates/{gate.pk}/decisions", seen=seen, verdict="approve")


def deciding_together() -> Call:
    program = Program(team=make_team(may=MAY))
    told = [
        {"gate": gate.pk, "seen": bytes(gate.standing().digest).hex()}
        for gate in alike(2, policy=make_policy(program.team))
    ]
    body = {"verdict": "approve", "comment": REASON, "second_look": True, "gates": told}
    return replace(person(program, "/api/gates/decisions", **body), in_parts=True)


def ordering(noun: str, **body: Any) -> Callable[[], Call]:
    """An order about a run that is at its second checkpoint, and was let go."""

    def made() -> Call:
        program = at_work()
        program.draft()
        program.ok(program.work("releases"))
        return person(program, f"/api/runs/{program.run}/{noun}", **body)

    return made


# A call of each kind of transaction; that every call is one is `do_once`'s.
CALLS: dict[str, Callable[[], Call]] = {
    "claim_run": claim_decided,
    "report_effect": reporting,
    "decide_gates": deciding_together,
    "post_gates": new("/api/gates/batches", {"gates": [{**WIRES, "title": f"Wire {n}"} for n in range(3)]}),
    "register_version": new("/api/agents/{agent}/versions", {"version": "1", "state_schema": SCHEMA, "steps": STEPS}),
    "start_run": new("/api/runs", {"input": {"invoice": {}}}, registered=True),
    "post_gate": new("/api/gates", WIRES),
    "save_checkpoints": working("checkpoints/batches", checkpoints=[{"step": "draft", "ops": OPS}]),
    "open_gate": ask,
    "begin_effect": beginning,
    "report_failure": working("failures", step="draft", error="no bank"),
    "release_run": working("releases"),
    "end_run": working("endings", status="failed", reason="no more"),
    "decide_gate": deciding,
    "withdraw_gate": withdrawing,
    "rewind_run": ordering("rewinds", to=1),
    "cancel_run": ordering("cancellations"),
}


def sent(killable: Talking, call: Call, at: str, kill: int) -> dict[str, int]:
    """What became of the process that was asked."""
    asked = {"address": call.address, "body": call.body, "headers": call.headers, "at": at, "kill": kill}
    told: dict[str, int] = json.loads(killable.tell(json.dumps(asked)))
    return told


def again(call: Call) -> None:
    """The same call by somebody who goes on: it is done by now, once."""
    answer = call.program.client.post(call.address, call.body, content_type="application/json", headers=call.headers)
    assert answer.status_code in (200, 201), answer.content


def kills() -> Iterator[Any]:
    """A few between statements or around commits; `make test-long` kills each call at every one of both."""
    for number, name in enumerate(CALLS):
        if number < 4:
            yield name, *(("commit", 4) if number % 2 else ("statement", 40))
        yield from (pytest.param(name, at, 1, marks=pytest.mark.long) for at in ("statement", "commit"))


@pytest.mark.parametrize(("name", "at", "step"), [*kills()])
def test_wherever_the_process_is_killed_all_of_the_call_landed_or_none_and_sent_again_it_is_done_once(
    name: str, at: str, step: int, killable: Talking
) -> None:
    call = CALLS[name]()
    before = call.landed()
    again(call)
    whole = call.landed()
    assert whole != before
    call, none, landed = CALLS[name](), 0, 0
    for kill in chain((1, 2), count(2 + step, step)):  # before the first commit, after it, and at each so many after
        told = sent(killable, call, at, kill)
        if told["ended"] == 0:
            break
        assert told["ended"] == -9
        if call.landed() == before:
            none += 1
            continue
        assert call.in_parts or call.landed() == whole, f"half of it stands, killed at {at} {kill}"
        landed += 1
        again(call)
        assert call.landed() == whole
        assert Answer.objects.filter(key=call.program.agent).count() == 1
        call = CALLS[name]()
    assert told["status"] in (200, 201)
    assert call.landed() == whole
    assert none >= 1
    assert landed >= (at == "commit")
    for run in Run.objects.filter(team=call.program.team):
        assert verify_runs.verify_run(run) == []
