"""A program that is not heard of any more: told on pages and in the feed, and its gate withdrawn where that is said.

Gone in the middle of an effect, people are asked once its lease is over, whoever comes or not.
"""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import httpx
import pytest
from django.db import connections
from django.db.models import F

from agents.models import Client, Effect
from agents.moves import cancel, rewind
from agents.remote import absent_programs, reach
from agents.serving.sweeper import Sweeper
from approvals.errors import NotAllowed
from approvals.gates import closing, preflight_facts
from approvals.models import Gate, Policy
from approvals.policy import separation
from checkpoints.actors import SYSTEM
from checkpoints.audit import verify_runs
from checkpoints.models import Checkpoint, Event, Run
from tests.agents.remote.gates.test_owners import started_by_somebody_else
from tests.agents.remote.outside_program import ACTION, STEPS, WIRE, Program, closed_before, decide
from tests.factories import MEMBER, ann, bob, make_policy, make_team, make_user, mira
from tests.factories.tokens import bearing, make_token
from tests.harness.examples import first_alone
from tests.harness.services import Talking
from tests.harness.signed_in_clients import signed_in
from tests.harness.waiting import PATIENCE

ASKED = {"id": "wire", "arguments": WIRE}
REPORT = {"status": "done", "writes": {"receipt": {"id": "tx_1"}}}
AT_ONCE = 4


def silent(program: Program, **since: float) -> None:
    """Age the last word of the program."""
    Client.objects.filter(run=program.run).update(heard_at=F("heard_at") - timedelta(**since))


def said(program: Program, *kinds: str) -> int:
    """The events of its run: those of these kinds, or all."""
    return Event.objects.filter(run_id=program.run, **({"kind__in": kinds} if kinds else {})).count()


def words(program: Program) -> tuple[str, str]:
    """(colour, words) of what the preflight says of the program."""
    run = Run.objects.select_related("plan").get(pk=program.run)
    return next((each.colour, each.words) for each in preflight_facts.of_run(run).findings if each.check == "program")


def test_one_that_went_silent_is_missed_once_and_heard_again_and_one_that_is_there_or_went_away_is_not() -> None:
    program, deferred = Program(), Program()
    gate = program.to_gate()
    deferred.start()
    deferred.draft()
    deferred.ask(deferred=True)
    silent(deferred, days=2)
    absent_programs.miss()
    assert (said(program, "run.missed"), said(deferred, "run.missed")) == (0, 0)
    colour, told = words(program)
    assert (colour, "(“box:81”) was last seen" in told) == ("green", True)
    assert "comes back for the outcome" in words(deferred)[1]
    silent(program, minutes=12)
    absent_programs.miss()
    absent_programs.miss()
    assert said(program, "run.missed") == 1
    colour, told = words(program)
    assert (colour, "last seen 12 min ago" in told) == ("amber", True)
    assert program.client.get(f"/api/gates/{gate.pk}/outcome").status_code == 200
    assert (said(program, "run.heard"), words(program)[0]) == (1, "green")


@pytest.mark.parametrize(("address", "subject"), [("events", "run"), ("events/stream", "gate")])
def test_one_that_listens_to_its_gate_or_run_is_there(address: str, subject: str) -> None:
    """Whoever waited by Server-Sent Events was missed after a minute and a half, and its gate could be withdrawn."""
    program = Program()
    gate = program.to_gate()
    silent(program, minutes=12)
    absent_programs.miss()
    about = f"gate:{gate.pk}" if subject == "gate" else f"run:{program.run}"
    assert program.client.get(f"/api/{address}", {"subject": about, "after": "now"}).status_code == 200
    assert (said(program, "run.heard"), words(program)[0]) == (1, "green")


def test_one_that_works_by_a_persons_own_token_is_heard_by_that_and_by_no_other() -> None:
    team = make_team(may=MEMBER)
    olga = make_user("Olga Owner", team)
    program = Program(team=team, owner=olga)
    own, another = (make_token(olga)[1] for _ in range(2))
    program.client = bearing(own)
    told = program.ok(program.post("gates", {"agent": program.agent, "title": "Wire", "actions": [ASKED]}))
    program.run = told["run"]
    silent(program, minutes=12)
    absent_programs.miss()
    assert bearing(another).get(f"/api/gates/{told['gate']}/outcome").status_code == 200
    assert said(program, "run.heard") == 0
    assert program.client.get(f"/api/gates/{told['gate']}/outcome").status_code == 200
    assert said(program, "run.heard") == 1


def test_the_runs_page_says_which_program_has_it_and_when_that_is_gone() -> None:
    """A run whose program had died in a step was shown as one that runs."""
    program = Program()
    program.start()
    reader = signed_in(make_user("Rae Reader", program.team))
    page = reader.get(f"/runs/{program.run}/").content.decode()
    assert ("claimed by “box:81”" in page, "not heard of" in page) == (True, False)
    silent(program, minutes=12)
    page = reader.get(f"/runs/{program.run}/").content.decode()
    assert "claimed by “box:81”, which has sent nothing for 12 min" in page
    assert "and its program (“box:81”) was last seen 12 min ago" in page


def gate_of(program: Program, after: timedelta | None) -> Gate:
    """Its gate under a policy that withdraws it `after` so long."""
    Policy.objects.filter(pk=make_policy(program.team, name="default").pk).update(withdraw_after=after)
    return program.to_gate()


def test_its_gate_is_withdrawn_where_its_policy_says_so_and_stays_where_nothing_does() -> None:
    program, unsaid, deferred, heard = (Program() for _ in range(4))
    gate = gate_of(program, timedelta(minutes=10))
    stay = [gate_of(unsaid, None), *(gate_of(each, timedelta(minutes=10)) for each in (deferred, heard))]
    silent(program, minutes=9)
    for other in (unsaid, deferred, heard):
        silent(other, hours=3)
    Client.objects.filter(run=deferred.run).update(deferred=True)
    reach.note_presence(heard.row())
    absent_programs.miss()
    Sweeper().withdraw_gates()
    assert Gate.objects.get(pk=gate.pk).status == "open"
    silent(program, minutes=2)
    absent_programs.miss()
    Sweeper().withdraw_gates()
    ended = Gate.objects.get(pk=gate.pk)
    assert (ended.status, ended.outcome.words) == ("withdrawn", "The external program has sent nothing for 10 min.")
    assert [Gate.objects.get(pk=each.pk).status for each in stay] == ["open"] * 3
    assert program.claim()["status"] == "cancelled"


def test_nothing_is_kept_of_programs_whose_runs_have_ended() -> None:
    program = Program()
    program.start()
    program.ok(program.work("endings", status="failed", reason="It broke."))
    silent(program, hours=1)
    absent_programs.miss()
    absent_programs.miss()
    assert not Client.objects.filter(run=program.run).exists()
    assert said(program, "run.missed") == 0


def test_a_run_that_was_refused_ends_without_its_program_and_what_a_program_has_to_do_waits_for_it() -> None:
    rejected, withdrawn, approved, sent_back = programs = [Program() for _ in range(4)]
    gates = [program.to_gate() for program in programs]
    decide(gates[0], "reject", comment="No.")
    closing.withdraw(gates[1], by=SYSTEM, reason="Not needed.")
    decide(gates[2])
    decide(gates[3], "reject", comment="No.", then="back", back_to="draft")
    Sweeper().go_on_alone()
    assert {program.row().status for program in programs} == {"queued"}  # their programs may be first
    for gate in gates:
        closed_before(gate)
    for _ in range(2):
        Sweeper().go_on_alone()
        assert [program.row().status for program in programs] == ["cancelled", "cancelled", "queued", "queued"]
    assert [said(program, "run.cancelled") for program in (rejected, withdrawn)] == [1, 1]
    assert [program.claim()["next"]["step"] for program in (approved, sent_back)] == ["wire", "draft"]


def test_one_whose_data_does_not_verify_stops_no_other() -> None:
    """It ended the sweeper's pass before the audit was sealed, and every pass after it."""
    broken, sound = Program(), Program()
    for program in (broken, sound):
        gate = program.to_gate()
        decide(gate, "reject", comment="No.")
        closed_before(gate)
    Checkpoint.objects.filter(run=broken.run).update(checksum=bytes(16))
    Sweeper().go_on_alone()
    assert (broken.row().status, sound.row().status) == ("queued", "cancelled")
    Run.objects.filter(pk=broken.run).update(status="cancelled")


def test_one_that_its_program_has_to_settle_is_left_alone_once_it_was_tried() -> None:
    """It was claimed and let go of each second, with two events in the audit each time."""
    program = Program()
    program.to_effect()
    program.ok(program.report(program.begin()["id"]))
    run = Run.objects.select_related("plan", "team").get(pk=program.run)
    mover = make_user("Mo Mover", program.team)
    rewind.rewind(run, to=1, by=mover, confirm=True)
    program.claim()
    program.draft(amount="80.00")
    gate = Gate.objects.get(pk=program.ask()["gate"])
    run.refresh_from_db()
    cancel.cancel(run, by=mover, reason="Not needed.")
    closed_before(gate)
    before, sweeper = said(program), Sweeper()
    sweeper.go_on_alone()
    sweeper.go_on_alone()
    assert said(program) == before
    assert program.claim()["next"]["kind"] == "undo"


def began(**plan: Any) -> tuple[Program, dict[str, Any]]:
    """A program that has begun the payment which people allowed."""
    program = Program()
    program.start(steps=[{**each, **plan} if each["name"] == "wire" else each for each in STEPS])
    program.draft()
    program.get_approved()
    return program, program.begin()


def questions(program: Program) -> list[Gate]:
    return list(Gate.objects.open().filter(run=program.run, kind="recovery"))


def test_people_are_asked_what_became_of_it_and_nobody_has_to_claim() -> None:
    program, effect = began()
    program.lapse()
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
    program.start(steps=[{**draft, "jumps": ["strict"]}, {**review, "on_reject": ""}, strict, wire, report])
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
    program = started_by_somebody_else()
    program.draft()
    decide(Gate.objects.get(pk=program.ask()["gate"]), by=mira(program.team))
    program.claim()
    program.begin()
    program.lapse()
    Sweeper().go_on_alone()
    (question,) = questions(program)
    assert question.asked_by == program.owner
    with pytest.raises(NotAllowed, match="You own the token of the program"):
        decide(question, "answer", by=program.owner, answer={"choice": "not_happened"})


def test_what_may_be_sent_twice_is_left_to_whoever_claims_next_and_so_are_a_step_and_a_lease_that_lasts() -> None:
    again, effect = began(idempotent=True)
    step, (working, _) = Program(), began()
    step.start()
    programs = [again, step, working]
    again.lapse()
    step.lapse()
    before = [(program.row().status, program.row().token, said(program)) for program in programs]
    Sweeper().go_on_alone()
    assert [(program.row().status, program.row().token, said(program)) for program in programs] == before
    assert [questions(program) for program in programs] == [[], [], []]
    again.claim()
    row = again.begin()
    assert (row["id"], row["key"], row["attempts"]) == (effect["id"], effect["key"], 2)


def test_who_reports_late_in_its_place_is_an_author_of_what_comes_of_it() -> None:
    """A claim's token is a small number: a colleague reported a receipt of his own, and approved what followed."""
    program, effect = began()
    program.lapse()
    colleague = bob(program.team)
    other = Program(team=program.team, agent=program.agent, owner=colleague, run=program.run, token=program.token)
    program.ok(other.report(effect["id"]))
    head = program.row().head
    assert head
    wrote = separation.contributions(program.row(), head, "later")
    assert [(each.what, each.person) for each in wrote] == [(separation.WORKED, colleague.pk)]


@pytest.mark.parametrize("time", first_alone(range(AT_ONCE + 1)))
def test_sweepers_and_the_programs_own_report_at_once_come_to_one_end(web: str, time: int) -> None:
    program, effect = began()
    program.lapse()

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
    acts.insert(time, report)
    with ThreadPoolExecutor(len(acts)) as pool:
        told = [each for each in pool.map(lambda act: act(0), acts) if each]
    assert told == [201]
    row = Effect.objects.get(pk=effect["id"])
    assert (row.status, questions(program)) == ("done", [])
    said = Counter(Event.objects.filter(subject=f"effect:{row.pk}").values_list("kind", flat=True))
    assert said["effect.done"] == 1
    assert Gate.objects.filter(run=program.run, kind="recovery").count() == said["effect.unknown"] <= 1
    assert verify_runs.verify_run(program.row()) == []


@pytest.mark.parametrize("at", first_alone(["commit", "statement"]))
def test_wherever_the_sweeper_is_killed_the_question_is_asked_once_by_the_next(at: str, killable: Talking) -> None:
    kill, none, landed = 0, 0, 0
    while True:
        kill += 1
        program, _ = began()
        program.lapse()
        ended = json.loads(killable.tell(json.dumps({"sweep": program.run, "at": at, "kill": kill})))["ended"]
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
