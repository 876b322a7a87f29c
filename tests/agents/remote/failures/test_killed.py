"""kill -9 of the web process between the statements and around every commit of each call: all of it landed, or none.

The same call sent again with its key goes on: it is done once, and answered as it would have been. A bulk decision is a
transaction for each gate, so that some of its gates may be decided; sent again it decides the rest.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import chain, count
from typing import Any

import pytest
from django.utils import timezone

from agents.models import Answer, Client, Effect, Wait
from agents.moves import rewind
from approvals.assignments import claims as gate_claims
from approvals.gates import questions
from approvals.models import AgentQuestion, BulkOrder, Decision, Gate, Grant, Outcome, Proposal
from checkpoints.actors import SYSTEM
from checkpoints.audit import verify_runs
from checkpoints.models import Checkpoint, Event, Hold, Plan, Run
from checkpoints.runs import holds
from checkpoints.store import claims
from tests.agents.api.sent_requests import operations
from tests.agents.remote.gates.test_asking_only import posted
from tests.agents.remote.outside_program import ACTION, SCHEMA, STEPS, WIRE, Program, decide
from tests.approvals.bulk.bulk_forms import REASON, alike
from tests.approvals.decisions.undoing.windows import make_held
from tests.factories import MEMBER, ann, bob, make_policy, make_team
from tests.factories.stored_runs import take
from tests.factories.tokens import bearing, make_token
from tests.harness.services import Talking

MAY = ("approvals.decide_gate", "checkpoints.rewind_run", *MEMBER)
OPS = [{"op": "set", "field": "payment", "value": WIRE}]
DONE = {"status": "done", "writes": {"receipt": {"id": "tx_1"}}}


@pytest.fixture(autouse=True)
def _no_wait_for_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs here are between two calls when their run is taken over: none would let go of it meanwhile."""
    monkeypatch.setattr(rewind, "HALT_SECONDS", 0.0)


@pytest.fixture(scope="module")
def web() -> Iterator[Talking]:
    """The warm process; see .caller."""
    command = [sys.executable, "-m", "tests.agents.remote.failures.killable_caller"]
    environment = {"HOLDPOINT_LOG_LEVEL": "ERROR"}
    process = Talking(*command, env=environment)
    yield process
    process.close()


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
            "questions": list(AgentQuestion.objects.filter(**of_team).order_by("pk").values_list("status", flat=True)),
            "outcomes": Outcome.objects.filter(**of_team).count(),
            "grants": Grant.objects.filter(outcome__gate__team=team).count(),
            "holds": Hold.objects.filter(run__in=run).count(),
            "names": Hold.objects.standing().filter(run__in=run, kind="name").count(),
            "effects": list(Effect.objects.filter(run__in=run).order_by("pk").values_list("status", "attempts")),
            "waits": Wait.objects.filter(run__in=run).exclude(ended_by="").count(),
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
    program = at_work()
    program.draft()
    decide(Gate.objects.get(pk=program.ask()["gate"]))
    program.claim()
    return program


def begun() -> tuple[Program, int]:
    program = allowed()
    return program, program.begin()["id"]


def working(noun: str, **body: Any) -> Callable[[], Call]:
    """A call about a run at its first step."""

    def made() -> Call:
        program = at_work()
        return Call(program, f"/api/runs/{program.run}/{noun}", {"token": program.token, **body})

    return made


def register() -> Call:
    program = Program(team=make_team(may=MAY))
    body = {"version": "1", "state_schema": SCHEMA, "steps": STEPS}
    return Call(program, f"/api/agents/{program.agent}/versions", body)


def signal() -> Call:
    """One to a run whose version takes it."""
    program = Program(team=make_team(may=MAY))
    program.register(signals={"stop": {"type": "null"}})
    run = program.ok(program.post("runs", {"agent": program.agent, "input": {"invoice": {}}}))["id"]
    return Call(program, f"/api/runs/{run}/signals/stop", {"value": None, "key": "k"})


def start() -> Call:
    program = Program(team=make_team(may=MAY))
    program.register()
    return Call(program, "/api/runs", {"input": {"invoice": {}}})


def post() -> Call:
    program = Program(team=make_team(may=MAY))
    return Call(program, "/api/gates", {"title": "Wire", "actions": [{"id": "wire", "arguments": WIRE}]})


def post_several() -> Call:
    program = Program(team=make_team(may=MAY))
    return Call(program, "/api/gates/batches", {"gates": [{**post().body, "title": f"Wire {n}"} for n in range(3)]})


def claim() -> Call:
    program = Program(team=make_team(may=MAY))
    program.register()
    program.run = program.ok(program.post("runs", {"input": {"invoice": {}}}))["id"]
    return Call(program, f"/api/runs/{program.run}/claims", {})


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


def begin() -> Call:
    program = allowed()
    return Call(program, f"/api/runs/{program.run}/effects", {"token": program.token, "step": "wire"})


def reporting(**body: Any) -> Callable[[], Call]:
    """A word about an effect that was begun."""

    def made() -> Call:
        program, effect = begun()
        address = f"/api/runs/{program.run}/effects/{effect}/results"
        return Call(program, address, {"token": program.token, **body})

    return made


def went_back() -> tuple[Program, int]:
    """One whose run was sent back to its start, and left the payment behind."""
    program, effect = begun()
    program.ok(program.report(effect))
    sent = make_token(ann(program.team))[1]
    moved = bearing(sent).post(
        f"/api/runs/{program.run}/rewinds", {"to": 1, "confirm": True}, content_type="application/json"
    )
    assert moved.status_code == 200
    return program, effect


def begin_undo() -> Call:
    program, effect = went_back()
    program.claim()
    program.draft(amount="80.00")
    decide(Gate.objects.get(pk=program.ask()["gate"]))
    program.claim()
    return Call(program, f"/api/runs/{program.run}/effects", {"token": program.token, "undoes": effect})


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


def undoing() -> Call:
    """An undo of a decision that its policy still lets be undone."""
    program = Program(team=make_team(may=MAY))
    gate, me = make_held(program.team), ann(program.team)
    decide(gate, by=me)
    return Call(program, f"/api/gates/{gate.pk}/undos", {}, make_token(me)[1])


def asking() -> Call:
    program = Program(team=make_team(may=MAY))
    return person(program, f"/api/gates/{program.to_gate().pk}/questions", text="Why seven?")


def answering() -> Call:
    program = Program(team=make_team(may=MAY))
    gate = program.to_gate()
    asked = questions.ask(gate, by=ann(program.team), text="Why seven?", key="q")
    return Call(program, f"/api/gates/{gate.pk}/answers", {"question": asked.pk, "text": "It says so."})


def at_the_desk(noun: str, claimed: str = "", **body: Any) -> Callable[[], Call]:
    """An order of a reviewer about who is on a gate, or is asked."""

    def made() -> Call:
        program = at_work()
        program.draft()
        gate = Gate.objects.get(pk=program.ask()["gate"])
        me, other = ann(program.team), bob(program.team)
        if claimed:
            gate_claims.claim(gate, by=me if claimed == "by me" else other)
        named = {"person": other.username, **body} if body else {}
        return Call(program, f"/api/gates/{gate.pk}/{noun}", named, make_token(me)[1])

    return made


def withdrawing() -> Call:
    program = at_work()
    program.draft()
    return Call(program, f"/api/gates/{program.ask()['gate']}/withdrawals", {})


def taking() -> Call:
    program = Program(team=make_team(may=MAY))
    gate = posted(program, ask_only=True)
    decide(gate)
    return Call(program, f"/api/gates/{gate.pk}/handouts", {"to": "call-1"})


def ordering(noun: str, **body: Any) -> Callable[[], Call]:
    """An order about a run that is at its second checkpoint, and was let go."""

    def made() -> Call:
        program = at_work()
        program.draft()
        program.ok(program.work("releases"))
        return person(program, f"/api/runs/{program.run}/{noun}", **body)

    return made


def settling() -> Call:
    program, _ = went_back()
    return person(program, f"/api/runs/{program.run}/settlements")


def unnaming() -> Call:
    call = ordering("checkpoints/2/names/removals")()
    run = Run.objects.get(pk=call.program.run)
    holds.name(run, 2, "Before paying", by=SYSTEM)
    return call


def waking() -> Call:
    """An order to a run whose step sleeps."""
    program = Program(team=make_team(may=MAY))
    program.register()
    program.run = program.ok(program.post("runs", {"input": {"invoice": {}}}))["id"]
    run, tomorrow = Run.objects.get(pk=program.run), timezone.now() + timedelta(days=1)
    claims.release(take(run), status="waiting", wake_at=tomorrow, reason="Waits until tomorrow", by=SYSTEM)
    run.refresh_from_db()
    assert run.head
    Wait.objects.create(
        run=run, base=run.head, step=run.next_step, kind="timer", name="soak", number=1, head=run.head,
        input_digest=b"i" * 32, occurrence=0, due=tomorrow,
    )  # fmt: skip
    return person(program, f"/api/runs/{program.run}/wakes")


CALLS: dict[str, Callable[[], Call]] = {
    "register_version": register,
    "start_run": start,
    "post_gate": post,
    "post_gates": post_several,
    "claim_run": claim,
    "claim_run, decided": claim_decided,
    "save_checkpoints": working("checkpoints/batches", checkpoints=[{"step": "draft", "ops": OPS}]),
    "save_checkpoint": working("checkpoints", step="draft", ops=OPS),
    "open_gate": ask,
    "begin_effect": begin,
    "begin_effect, undo": begin_undo,
    "report_effect": reporting(**DONE),
    "report_effect, unknown": reporting(status="unknown", error="timed out"),
    "report_failure": working("failures", step="draft", error="no bank"),
    "release_run": working("releases"),
    "end_run": working("endings", status="failed", reason="no more"),
    "decide_gate": deciding,
    "decide_gates": deciding_together,
    "undo_decision": undoing,
    "ask_agent": asking,
    "answer_question": answering,
    "claim_gate": at_the_desk("claims"),
    "release_gate": at_the_desk("releases", claimed="by me"),
    "take_gate_over": at_the_desk("takeovers", claimed="by another"),
    "reassign_gate": at_the_desk("reassignments", reason="She knows them."),
    "withdraw_gate": withdrawing,
    "take_approval": taking,
    "rewind_run": ordering("rewinds", to=1),
    "edit_run": ordering("edits", at=2, patch=[{"op": "replace", "path": "/payment/amount", "value": "9.00"}]),
    "fork_run": ordering("forks", at=1),
    "settle_run": settling,
    "cancel_run": ordering("cancellations"),
    "send_signal": signal,
    "wake_run": waking,
    "name_checkpoint": ordering("checkpoints/2/names", name="Before paying"),
    "unname_checkpoint": unnaming,
}
# Webhooks are one statement each, and what they tell is an outbox.
# In tests/approvals/webhooks, tests/agents/device and tests/clients/langgraph.
APART = ("/webhooks", "/device/", "/threads/")
ELSEWHERE = {told["operationId"] for path, method, told in operations() if any(each in path for each in APART)}


def sent(web: Talking, call: Call, at: str, kill: int) -> dict[str, int]:
    """What became of the process that was asked."""
    asked = {"address": call.address, "body": call.body, "headers": call.headers, "at": at, "kill": kill}
    told: dict[str, int] = json.loads(web.tell(json.dumps(asked)))
    return told


def again(call: Call) -> None:
    """The same call by somebody who goes on: it is done by now, once."""
    answer = call.program.client.post(
        call.address, call.body, content_type="application/json", headers=call.headers
    )  # fmt: skip
    assert answer.status_code in (200, 201), answer.content


def kills() -> Iterator[Any]:
    """Between statements or around commits, in turn; `make test-long` kills each call at every one of both."""
    for number, name in enumerate(CALLS):
        yield name, *(("commit", 4) if number % 2 else ("statement", 40))
        yield from (pytest.param(name, at, 1, marks=pytest.mark.long) for at in ("statement", "commit"))


@pytest.mark.parametrize(("name", "at", "step"), [*kills()])
def test_wherever_the_process_is_killed_all_of_the_call_landed_or_none_and_sent_again_it_is_done_once(
    name: str, at: str, step: int, web: Talking
) -> None:
    call = CALLS[name]()
    before = call.landed()
    again(call)
    whole = call.landed()
    assert whole != before
    call, none, landed = CALLS[name](), 0, 0
    for kill in chain((1, 2), count(2 + step, step)):  # before the first commit, after it, and at each so many after
        told = sent(web, call, at, kill)
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


def test_no_call_that_writes_is_left_out() -> None:
    described = {told["operationId"] for _, method, told in operations() if method == "post"}
    keyless = {"preview_order", "preview_decision", "beat_run"}
    swept = {name.partition(",")[0] for name in CALLS}
    assert described - keyless - ELSEWHERE - swept == set()
