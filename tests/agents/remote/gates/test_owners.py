"""Whoever has a program work on somebody else's run does not approve what came of it.

A reviewer claimed a colleague's run with a token of his own, saved where the money should go, released the run, and
approved that alone at the gate which the colleague's program opened. And under which policy a program may ask: one that
there is, and its token's own where that has one.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals.errors import NotAllowed
from approvals.gates.lists import queues
from approvals.models import Gate, Policy
from approvals.policy import authority, required, separation
from approvals.policy.enough_reviewers import lacking
from approvals.presentation.gate_page import earlier
from checkpoints.models import Event, Plan, Run
from tests.agents.api.test_doors import refusal
from tests.agents.remote.outside_program import ACTION, SCHEMA, STEPS, WIRE, Program, decide
from tests.factories import MEMBER, ann, bob, make_policy, make_team, make_user, waiting
from tests.factories.tokens import bearing, make_token


def of(owner: User, program: Program) -> Program:
    """Another program for the same run."""
    return Program(team=program.team, agent=program.agent, owner=owner, run=program.run, token=program.token)


def why_not(person: User, gate: Gate) -> str:
    return authority.why_not(person, Gate.objects.select_related("run", "policy").get(pk=gate.pk))


def test_who_claimed_and_saved_a_step_is_apart() -> None:
    program = Program()
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
    assert earlier.changes(gate) == [f"A program of Bob Lindqvist worked on R-{program.run}"]
    assert not why_not(mira, gate)


def test_who_saves_under_a_colleagues_claim_is_apart() -> None:
    """A claim's token is a small number, which anybody can guess."""
    program = Program()
    assert program.to_gate().authors == []
    assert not Event.objects.filter(run_id=program.run, kind="program.joined").exists()
    program.start()
    bob = make_user("Bob Lindqvist", program.team)
    of(bob, program).draft(to="MALLORY")
    gate = Gate.objects.get(pk=program.ask()["gate"])
    assert gate.authors == [bob.pk]
    assert why_not(bob, gate)


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
    other, own = ann(program.team), program.client
    program.client = bearing(make_token(other)[1])
    gate = Gate.objects.get(pk=program.ask()["gate"])
    assert gate.asked_by == other
    with pytest.raises(NotAllowed, match="You own the token of the program"):
        decide(gate, by=other)
    program.client = own
    told = program.ok(program.post("gates", {"title": "Wire", "actions": [{"id": "wire", "arguments": WIRE}]}))
    assert Gate.objects.get(pk=told["gate"]).asked_by == program.owner


def test_nor_the_owner_of_the_token_whose_program_does_not_know_what_happened_but_where_no_policy_asks_for_it() -> None:
    program = started_by_somebody_else()
    make_policy(program.team, name="default", separation=False)
    program.draft()
    gate = Gate.objects.get(pk=program.ask()["gate"])
    decide(gate, by=program.owner)
    assert Gate.objects.get(pk=gate.pk).outcome.kind == "approved"
    program.claim()
    told = program.ok(program.report(program.begin()["id"], status="unknown", writes={}, error="timed out"))
    question = Gate.objects.get(pk=told["gate"])
    assert (question.kind, question.asked_by) == ("recovery", program.owner)


def bound() -> Program:
    """A program whose token is for the policy `strict` of a team that has a milder one too."""
    team = make_team(may=MEMBER)
    for name in ("strict", "mild"):
        make_policy(team, name=name)
    program = Program(team=team)
    owner = make_user("Ona Owner", team)
    program.client = bearing(make_token(owner, team=team, agent=program.agent, policy="strict")[1])
    return program


def posted(program: Program, **more: Any) -> Any:
    return program.post("gates", {"title": "Wire", "actions": [{"id": "wire", "arguments": WIRE}], **more})


def steps(policy: str) -> list[dict[str, Any]]:
    """The plan, with its gate under this policy."""
    return [{**step, "policy": policy} if step["kind"] == "gate" else step for step in STEPS]


def test_a_posted_gate_is_under_the_tokens_own_and_one_under_another_is_refused() -> None:
    program = bound()
    for named in ("mild", "default", "nothing-such"):
        told = refusal(posted(program, policy=named), 403)
        assert (told["code"], "only under the policy strict" in told["detail"]) == ("not_allowed", True)
    assert not Run.objects.filter(team=program.team).exists()
    for named in ("", "strict"):
        told = program.ok(posted(program, policy=named))
        assert Gate.objects.get(pk=told["gate"]).policy.name == "strict"


def test_a_plan_whose_gate_is_under_another_is_not_registered_and_what_it_says_is_asked_where_it_is_the_own() -> None:
    program = bound()
    for named in ("", "mild"):
        body = {"version": "1", "state_schema": SCHEMA, "steps": steps(named)}
        told = refusal(program.post(f"agents/{program.agent}/versions", body), 422)
        assert [each["parameter"] for each in told["errors"]] == ["/steps/1/policy"]
    assert not Plan.objects.filter(agent=program.agent).exists()
    program.start(steps=steps("strict"))
    program.draft()
    assert Gate.objects.get(pk=program.ask()["gate"]).policy.name == "strict"


def test_a_plan_that_another_token_registered_opens_no_other_door() -> None:
    program = bound()
    bound_by = program.client
    program.client = bearing(program.sent)
    program.register(steps=steps("mild"))
    program.client = bound_by
    program.run = program.ok(program.post("runs", {"input": {"invoice": {}}}))["id"]
    program.claim()
    program.draft()
    answer = program.work("gates", step="review", title="Wire", actions=[ACTION])
    assert "only under the policy strict" in refusal(answer, 403)["detail"]
    assert not Gate.objects.filter(run=program.run).exists()


def test_a_policy_that_there_is_not_is_named_with_those_that_there_are_and_none_is_made_on_the_spot() -> None:
    """It was taken for the team's default; and a `default` was made, which asks for one person and no password."""
    program = Program()
    make_policy(program.team, name="payouts", quorum=2, step_up=True)
    for named, words in (
        ("payuots", "has no policy payuots; it has payouts. Name one of these, or make payuots in the administration"),
        ("", "has no policy default, which a gate without a policy of its own uses; it has payouts. Name one of these, "
         "or make default in the administration"),
    ):  # fmt: skip
        told = refusal(posted(program, policy=named), 422)
        fault = {"parameter": "/policy", "detail": f"{program.team.name} {words}, and try again."}
        assert told["errors"] == [fault]
    assert not Run.objects.filter(team=program.team).exists()
    assert [each.name for each in Policy.objects.filter(team=program.team)] == ["payouts"]
    assert Gate.objects.get(pk=program.ok(posted(program, policy="payouts"))["gate"]).policy.quorum == 2
    make_policy(program.team, name="default")
    assert program.ok(posted(program))["gate"]


def test_a_plan_whose_gate_names_a_policy_that_its_runs_team_has_not_asks_once_there_is_one() -> None:
    """It asked under the team's default, which may want less; one that names none starts no run there."""
    program = Program()
    program.register(steps=steps("strict"))
    program.run = program.ok(program.post("runs", {"input": {"invoice": {}}}))["id"]
    make_policy(program.team, name="payouts")
    program.claim()
    program.draft()
    told = refusal(program.work("gates", step="review", title="Wire", actions=[ACTION]), 422)
    assert [each["parameter"] for each in told["errors"]] == ["/step"]
    assert f"{program.team.name} has no policy strict; it has payouts" in told["errors"][0]["detail"]
    assert not Gate.objects.filter(run=program.run).exists()
    make_policy(program.team, name="strict")
    assert Gate.objects.get(pk=program.ask()["gate"]).policy.name == "strict"
    program.register(version="2")  # which names none
    told = refusal(program.post("runs", {"agent": program.agent, "input": {"invoice": {}}}), 422)
    assert "has no policy default" in told["errors"][0]["detail"]
    assert {each.name for each in Policy.objects.filter(team=program.team)} == {"payouts", "strict"}
