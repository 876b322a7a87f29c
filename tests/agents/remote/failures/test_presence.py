"""A program that is not heard of any more: told on pages and in the feed, and its gate withdrawn where that is said."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models import F

from agents.models import Client
from agents.moves import cancel, rewind
from agents.remote import lost_programs
from agents.serving.sweeper import Sweeper
from approvals.gates import closing, preflight_facts
from approvals.models import Gate, Policy
from checkpoints.actors import SYSTEM
from checkpoints.models import Checkpoint, Event, Run
from tests.agents.remote.outside_program import WIRE, Program, decide
from tests.factories import MEMBER, make_policy, make_team, make_user
from tests.factories.tokens import bearing, make_token
from tests.harness.signed_in_clients import signed_in

ASKED = {"id": "wire", "arguments": WIRE}


def silent(program: Program, **since: float) -> None:
    """Age the last word of the program."""
    Client.objects.filter(run=program.run).update(heard_at=F("heard_at") - timedelta(**since))


def said(program: Program, kind: str) -> int:
    return Event.objects.filter(run_id=program.run, kind=kind).count()


def words(program: Program) -> tuple[str, str]:
    """(colour, words) of what the preflight says of the program."""
    run = Run.objects.select_related("plan").get(pk=program.run)
    return next((each.colour, each.words) for each in preflight_facts.of_run(run).findings if each.check == "program")


def test_one_that_is_there_is_not_missed() -> None:
    program = Program()
    program.to_gate()
    lost_programs.miss()
    assert said(program, "run.missed") == 0
    colour, told = words(program)
    assert (colour, "(“box:81”) was last seen" in told) == ("green", True)


def test_one_that_went_silent_is_missed_once_and_heard_again() -> None:
    program = Program()
    gate = program.to_gate()
    silent(program, minutes=12)
    lost_programs.miss()
    lost_programs.miss()
    assert said(program, "run.missed") == 1
    colour, told = words(program)
    assert (colour, "last seen 12 min ago" in told) == ("amber", True)
    assert program.client.get(f"/api/gates/{gate.pk}/outcome").status_code == 200
    assert (said(program, "run.heard"), words(program)[0]) == (1, "green")


@pytest.mark.parametrize("subject", ["gate", "run"])
@pytest.mark.parametrize("address", ["events", "events/stream"])
def test_one_that_listens_to_its_gate_or_run_is_there(address: str, subject: str) -> None:
    """Whoever waited by Server-Sent Events was missed after a minute and a half, and its gate could be withdrawn."""
    program = Program()
    gate = program.to_gate()
    silent(program, minutes=12)
    lost_programs.miss()
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
    lost_programs.miss()
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


def test_one_that_said_that_it_goes_away_is_not_missed() -> None:
    program = Program()
    program.start()
    program.draft()
    program.ask(deferred=True)
    silent(program, days=2)
    lost_programs.miss()
    assert said(program, "run.missed") == 0
    assert "comes back for the outcome" in words(program)[1]


def gate_of(program: Program, after: timedelta | None) -> Gate:
    """Its gate under a policy that withdraws it `after` so long."""
    Policy.objects.filter(pk=make_policy(program.team, name="default").pk).update(withdraw_after=after)
    return program.to_gate()


def test_its_gate_is_withdrawn_where_its_policy_says_so() -> None:
    program = Program()
    gate = gate_of(program, timedelta(minutes=10))
    silent(program, minutes=9)
    lost_programs.miss()
    Sweeper().withdraw_gates()
    assert Gate.objects.get(pk=gate.pk).status == "open"
    silent(program, minutes=2)
    lost_programs.miss()
    Sweeper().withdraw_gates()
    ended = Gate.objects.get(pk=gate.pk)
    assert (ended.status, ended.outcome.words) == ("withdrawn", "The external program has sent nothing for 10 min.")
    told = program.claim()
    assert told["status"] == "cancelled"


@pytest.mark.parametrize("spared", ["no policy", "deferred", "heard in that moment"])
def test_its_gate_stays_where_nothing_says_so(spared: str) -> None:
    program = Program()
    gate = gate_of(program, None if spared == "no policy" else timedelta(minutes=10))
    silent(program, hours=3)
    if spared == "deferred":
        Client.objects.filter(run=program.run).update(deferred=True)
    if spared == "heard in that moment":
        lost_programs.heard(program.row())
    lost_programs.miss()
    Sweeper().withdraw_gates()
    assert Gate.objects.get(pk=gate.pk).status == "open"


def test_nothing_is_kept_of_programs_whose_runs_have_ended() -> None:
    program = Program()
    program.start()
    program.ok(program.work("endings", status="failed", reason="It broke."))
    silent(program, hours=1)
    lost_programs.miss()
    lost_programs.miss()
    assert not Client.objects.filter(run=program.run).exists()
    assert said(program, "run.missed") == 0


def closed_before(gate: Gate) -> None:
    """Age its closing past the time in which its program may be first."""
    Gate.objects.filter(pk=gate.pk).update(closed_at=F("closed_at") - timedelta(minutes=1))


@pytest.mark.parametrize("how", ["rejected", "withdrawn"])
def test_a_run_that_was_refused_ends_without_its_program(how: str) -> None:
    program = Program()
    gate = program.to_gate()
    if how == "rejected":
        decide(gate, "reject", comment="No.")
    else:
        closing.withdraw(gate, by=SYSTEM, reason="Not needed.")
    Sweeper().go_on_alone()
    assert program.row().status == "queued"  # its program may be first
    closed_before(gate)
    Sweeper().go_on_alone()
    assert program.row().status == "cancelled"
    Sweeper().go_on_alone()
    assert Event.objects.filter(run_id=program.run, kind="run.cancelled").count() == 1


@pytest.mark.parametrize("how", ["approved", "sent back"])
def test_what_its_program_has_to_do_waits_for_it(how: str) -> None:
    program = Program()
    gate = program.to_gate()
    if how == "approved":
        decide(gate)
    else:
        decide(gate, "reject", comment="No.", then="back", back_to="draft")
    closed_before(gate)
    Sweeper().go_on_alone()
    assert program.row().status == "queued"
    assert program.claim()["next"]["step"] == ("wire" if how == "approved" else "draft")


def test_one_whose_data_does_not_verify_stops_no_other() -> None:
    """It ended the sweeper's pass before the audit was sealed, and every pass after it."""
    broken, sound = Program(), Program()
    for program in (broken, sound):
        gate = program.to_gate()
        decide(gate, "reject", comment="No.")
        closed_before(gate)
    Checkpoint.objects.filter(run=broken.run).update(checksum=bytes(16))
    Sweeper().sweep_once()
    assert (broken.row().status, sound.row().status) == ("queued", "cancelled")
    Run.objects.filter(pk=broken.run).update(status="cancelled")


def test_one_that_its_program_has_to_settle_is_left_alone_once_it_was_tried() -> None:
    """It was claimed and let go of each second, with two events in the audit each time."""
    program = Program()
    decide(program.to_gate())
    program.claim()
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
    events = Event.objects.filter(run_id=program.run).count()
    sweeper = Sweeper()
    sweeper.sweep_once()
    sweeper.sweep_once()
    assert Event.objects.filter(run_id=program.run).count() == events
    assert program.claim()["next"]["kind"] == "undo"
