"""Whoever has a program work on somebody else's run does not approve what came of it.

A reviewer claimed a colleague's run with a token of his own, saved where the money should go, released the run, and
approved that alone at the gate which the colleague's program opened.
"""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from approvals.errors import NotAllowed
from approvals.models import Gate
from approvals.policy import authority
from approvals.presentation.gate_facts import authors
from checkpoints.models import Event
from tests.agents.remote.outside_program import Program, decide
from tests.factories import make_user


def of(owner: User, program: Program) -> Program:
    """Another program for the same run."""
    return Program(team=program.team, agent=program.agent, owner=owner, run=program.run, token=program.token)


def why_not(person: User, gate: Gate) -> str:
    return authority.why_not(person, Gate.objects.select_related("run", "policy").get(pk=gate.pk))


@pytest.fixture
def program() -> Program:
    return Program()


def test_who_claimed_and_saved_a_step_is_apart(program: Program) -> None:
    program.start()
    bob, mira = make_user("Bob Lindqvist", program.team), make_user("Mira Sandoval", program.team)
    program.ok(program.work("releases"))
    other = of(bob, program)
    other.claim()
    other.draft(to="MALLORY")
    other.ok(other.work("releases"))
    program.claim()
    gate = Gate.objects.get(pk=program.ask()["gate"])
    assert gate.authors == [bob.pk]
    assert why_not(bob, gate)
    with pytest.raises(NotAllowed):
        decide(gate, by=bob)
    assert authors.changes(gate) == [f"A program of Bob Lindqvist worked on R-{program.run}"]
    assert not why_not(mira, gate)


def test_who_saves_under_a_colleagues_claim_is_apart(program: Program) -> None:
    """A claim's token is a small number, which anybody can guess."""
    program.start()
    bob = make_user("Bob Lindqvist", program.team)
    of(bob, program).draft(to="MALLORY")
    gate = Gate.objects.get(pk=program.ask()["gate"])
    assert gate.authors == [bob.pk]
    assert why_not(bob, gate)


def test_the_run_of_one_owner_has_no_other_authors(program: Program) -> None:
    gate = program.to_gate()
    assert gate.authors == []
    assert not Event.objects.filter(run_id=program.run, kind="program.joined").exists()
