"""A program that is gone in the middle of an effect: people are asked once its lease is over, whoever comes or not."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from django.db import connections

from agents.models import Effect
from agents.serving.sweeper import Sweeper
from approvals.errors import NotAllowed
from approvals.models import Gate
from approvals.policy import authorship
from checkpoints.audit import verify_runs
from checkpoints.models import Event, Run
from tests.agents.remote.outside_program import ACTION, STEPS, WIRE, Program, decide
from tests.factories import MEMBER, ann, bob, make_policy, make_team, mira
from tests.factories.tokens import bearing, make_token
from tests.harness.examples import first_alone
from tests.harness.services import Talking
from tests.harness.waiting import PATIENCE

REPORT = {"status": "done", "writes": {"receipt": {"id": "tx_1"}}}


def began(**plan: Any) -> tuple[Program, dict[str, Any]]:
    """A program that has begun the payment which people allowed."""
    program = Program()
    steps = [{**each, **plan} if each["name"] == "wire" else each for each in STEPS]
    program.register(steps=steps)
    program.run = program.ok(program.post("runs", {"agent": program.agent, "input": {"invoice": {}}}))["id"]
    program.claim()
    program.draft()
    decide(Gate.objects.get(pk=program.ask()["gate"]))
    program.claim()
    return program, program.begin()


def lapse(program: Program) -> None:
    """Let its lease run out."""
    Run.objects.filter(pk=program.run).update(lease_until="2026-01-01T00:00Z")


def questions(program: Program) -> list[Gate]:
    return list(Gate.objects.open().filter(run=program.run, kind="recovery"))


def events(program: Program) -> int:
    return Event.objects.filter(run_id=program.run).count()


def test_people_are_asked_what_became_of_it_and_nobody_has_to_claim() -> None:
    program, effect = began()
    lapse(program)
    Sweeper().go_on_alone()
    (question,) = questions(program)
    assert question.asked.title.startswith("Did “wire” happen?")
    assert (program.row().status, Effect.objects.get(pk=effect["id"]).status) == ("waiting", "unknown")
    Sweeper().go_on_alone()
    assert questions(program) == [question]


def test_the_question_is_for_the_people_whose_policy_approved_it() -> None:
    """It was asked by the policy of the plan's first gate that allows the effect: one person had it done again."""
    program = Program()
    make_policy(program.team, name="default")
    make_policy(program.team, name="strict", quorum=2)
    draft, review, wire, report = STEPS
    strict = {**review, "name": "strict", "policy": "strict"}
    program.register(steps=[{**draft, "jumps": ["strict"]}, {**review, "on_reject": ""}, strict, wire, report])
    program.run = program.ok(program.post("runs", {"agent": program.agent, "input": {"invoice": {}}}))["id"]
    program.claim()
    paid = [{"op": "set", "field": "payment", "value": WIRE}]
    program.ok(program.work("checkpoints", step="draft", next_step="strict", ops=paid))
    asked = program.ok(program.work("gates", step="strict", title="Wire 120.00", actions=[ACTION]))
    gate = Gate.objects.get(pk=asked["gate"])
    decide(gate, by=ann(program.team))
    decide(gate, by=mira(program.team))
    program.claim()
    effect = program.begin()
    program.ok(program.report(effect["id"], status="unknown", error="timed out", writes={}))
    (question,) = questions(program)
    assert question.policy.name == "strict"


def test_whoever_answers_for_it_does_not_answer_the_question() -> None:
    """Asked by the sweeper, the question was nobody's: bob's program vanished, and bob could say what it had done."""
    team = make_team(may=MEMBER)
    program = Program(team=team, owner=bob(team))
    program.register()
    own, program.client = program.client, bearing(make_token(ann(team))[1])
    program.run = program.ok(program.post("runs", {"agent": program.agent, "input": {"invoice": {}}}))["id"]
    program.client = own
    program.claim()
    program.draft()
    decide(Gate.objects.get(pk=program.ask()["gate"]), by=mira(team))
    program.claim()
    program.begin()
    lapse(program)
    Sweeper().go_on_alone()
    (question,) = questions(program)
    assert question.asked_by == program.owner
    with pytest.raises(NotAllowed, match="You own the token of the program"):
        decide(question, "answer", by=program.owner, answer={"choice": "not_happened"})


def test_while_its_lease_lasts_it_is_left_alone() -> None:
    program, _ = began()
    before = events(program)
    Sweeper().go_on_alone()
    assert (questions(program), program.row().status, events(program)) == ([], "running", before)


def test_what_may_be_sent_twice_is_left_to_whoever_claims_next() -> None:
    program, effect = began(idempotent=True)
    lapse(program)
    before = events(program)
    Sweeper().go_on_alone()
    assert (questions(program), program.row().token, events(program)) == ([], program.token, before)
    program.claim()
    assert program.begin()["key"] == effect["key"]


def test_a_step_that_it_left_is_left_alone() -> None:
    program = Program()
    program.start()
    lapse(program)
    before = events(program)
    Sweeper().go_on_alone()
    assert (program.row().status, events(program)) == ("running", before)


def test_an_effect_that_it_was_taking_back_is_asked_about_too() -> None:
    program, effect = began()
    program.ok(program.report(effect["id"]))
    sent = bearing(make_token(ann(program.team))[1])
    moved = sent.post(f"/api/runs/{program.run}/rewinds", {"to": 1, "confirm": True}, content_type="application/json")
    assert moved.status_code == 200
    program.claim()
    program.draft(amount="80.00")
    decide(Gate.objects.get(pk=program.ask()["gate"]))
    program.claim()
    program.ok(program.work("effects", undoes=effect["id"]))
    lapse(program)
    Sweeper().go_on_alone()
    (question,) = questions(program)
    assert question.asked.title.startswith("“wire” is not undone")


def test_what_it_reports_late_answers_the_question() -> None:
    program, effect = began()
    lapse(program)
    Sweeper().go_on_alone()
    program.ok(program.report(effect["id"]))
    assert (questions(program), Effect.objects.get(pk=effect["id"]).status) == ([], "done")
    told = program.claim()
    assert (told["next"]["step"], told["state"]["receipt"]) == ("report", {"id": "tx_1"})


def test_who_reports_late_in_its_place_is_an_author_of_what_comes_of_it() -> None:
    """A claim's token is a small number: a colleague reported a receipt of his own, and approved what followed."""
    program, effect = began()
    lapse(program)
    colleague = bob(program.team)
    other = Program(team=program.team, agent=program.agent, owner=colleague, run=program.run, token=program.token)
    program.ok(other.report(effect["id"]))
    head = program.row().head
    assert head
    wrote = authorship.contributions(program.row(), head, "later")
    assert [(each.what, each.person) for each in wrote] == [(authorship.WORKED, colleague.pk)]


AT_ONCE, TIMES = 4, 12


@pytest.mark.parametrize("time", first_alone(range(TIMES), 4))
def test_sweepers_and_the_programs_own_report_at_once_come_to_one_end(web: str, time: int) -> None:
    program, effect = began()
    lapse(program)

    def sweep(_: int) -> int:
        try:
            Sweeper().go_on_alone()
        finally:
            connections.close_all()
        return 0

    def report(_: int) -> int:
        headers = {"Authorization": f"Bearer {program.sent}"}
        address = f"{web}/api/runs/{program.run}/effects/{effect['id']}/results"
        return httpx.post(
            address, json={"token": program.token, **REPORT}, headers=headers, timeout=PATIENCE
        ).status_code

    acts = [sweep] * AT_ONCE
    acts.insert(time % (AT_ONCE + 1), report)
    with ThreadPoolExecutor(len(acts)) as pool:
        told = [each for each in pool.map(lambda act: act(0), acts) if each]
    assert told == [201]
    row = Effect.objects.get(pk=effect["id"])
    assert (row.status, questions(program)) == ("done", [])
    said = Counter(Event.objects.filter(subject=f"effect:{row.pk}").values_list("kind", flat=True))
    assert said["effect.done"] == 1
    assert Gate.objects.filter(run=program.run, kind="recovery").count() == said["effect.unknown"] <= 1
    assert verify_runs.verify_run(program.row()) == []


@pytest.fixture(scope="module")
def warm() -> Iterator[Talking]:
    """The warm process; see .caller."""
    command = [sys.executable, "-m", "tests.agents.remote.failures.killable_caller"]
    environment = {"HOLDPOINT_LOG_LEVEL": "ERROR"}
    process = Talking(*command, env=environment)
    yield process
    process.close()


@pytest.mark.parametrize("at", ["statement", "commit"])
def test_wherever_the_sweeper_is_killed_the_question_is_asked_once_by_the_next(at: str, warm: Talking) -> None:
    kill, none, landed = 0, 0, 0
    while True:
        kill += 1
        program, _ = began()
        lapse(program)
        ended = json.loads(warm.tell(json.dumps({"sweep": program.run, "at": at, "kill": kill})))["ended"]
        asked = questions(program)
        assert (program.row().status == "waiting") == bool(asked)
        if ended == 0:
            assert len(asked) == 1
            break
        assert ended == -9
        none, landed = none + (not asked), landed + bool(asked)
        Sweeper().go_on_alone()
        assert len(questions(program)) == 1
        assert verify_runs.verify_run(program.row()) == []
    assert none >= 1
    assert landed >= (at == "commit")
