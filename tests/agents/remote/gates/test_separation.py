"""Whoever answers for a program elsewhere does not approve what it asks, whoever started its run."""

from __future__ import annotations

import pytest

from approvals.errors import NotAllowed
from approvals.gates.lists import queues
from approvals.models import Gate
from approvals.policy import authority, required, separation
from approvals.policy.enough_reviewers import lacking
from tests.agents.remote.outside_program import WIRE, Program, decide
from tests.factories import MEMBER, ann, bob, make_policy, make_team, waiting
from tests.factories.tokens import bearing, make_token


def started_by_somebody_else() -> Program:
    """A program of bob's at work on a run that ann started."""
    team = make_team(may=MEMBER)
    program = Program(team=team, owner=bob(team))
    program.register()
    _, sent = make_token(ann(team))
    own, program.client = program.client, bearing(sent)
    program.run = program.ok(program.post("runs", {"agent": program.agent, "input": {"invoice": {}}}))["id"]
    program.client = own
    program.claim()
    return program


def test_the_owner_of_the_token_by_which_a_program_asks_may_not_approve() -> None:
    """Only whoever had started the run was kept from it: by a program at work on a colleague's run, bob had asked for
    a payment and then approved it."""
    program = started_by_somebody_else()
    program.draft()
    gate = Gate.objects.get(pk=program.ask()["gate"])
    assert program.owner is not None
    assert gate.asked_by == program.owner != gate.run.started_by
    with pytest.raises(NotAllowed, match="You own the token of the program"):
        decide(gate, by=program.owner)
    assert gate.pk not in waiting(program.owner)
    assert gate.pk not in queues.ReaderReach.of(program.owner).ids(queues.MINE, most=9)
    assert gate.run.started_by is not None
    assert authority.why_not(gate.run.started_by, gate) == str(separation.STARTED_IT)
    there = {program.owner.pk, gate.run.started_by.pk}
    gate.policy.reviewers = [gate.team]
    needs = required.own(gate.policy)
    assert "nobody may decide" in lacking(gate, needs, there).lower()
    third = ann(program.team)
    assert gate.pk in waiting(third)
    assert not lacking(gate, needs, there | {third.pk})
    decide(gate, by=third)


def test_nor_does_a_person_who_asks_by_a_token_of_their_own_in_the_programs_place() -> None:
    program = started_by_somebody_else()
    program.draft()
    other = ann(program.team)
    program.client = bearing(make_token(other)[1])
    gate = Gate.objects.get(pk=program.ask()["gate"])
    assert gate.asked_by == other
    with pytest.raises(NotAllowed, match="You own the token of the program"):
        decide(gate, by=other)


def test_nor_the_owner_of_the_token_whose_program_says_that_nobody_knows_what_happened() -> None:
    program = started_by_somebody_else()
    program.draft()
    decide(Gate.objects.get(pk=program.ask()["gate"]))
    program.claim()
    effect = program.begin()
    told = program.ok(program.report(effect["id"], status="unknown", writes={}, error="timed out"))
    question = Gate.objects.get(pk=told["gate"])
    assert (question.kind, question.asked_by) == ("recovery", program.owner)


def test_a_posted_gate_is_asked_by_whoever_posts_it() -> None:
    program = Program()
    told = program.ok(program.post("gates", {"title": "Wire", "actions": [{"id": "wire", "arguments": WIRE}]}))
    assert Gate.objects.get(pk=told["gate"]).asked_by == program.owner


def test_where_the_policy_does_not_ask_for_it_they_may() -> None:
    program = started_by_somebody_else()
    make_policy(program.team, name="default", separation=False)
    program.draft()
    gate = Gate.objects.get(pk=program.ask()["gate"])
    decide(gate, by=program.owner)
    assert Gate.objects.get(pk=gate.pk).outcome.kind == "approved"
