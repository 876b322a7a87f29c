"""Under which policy a program may ask: one that there is, and its token's own where that has one."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.models import Gate, Policy
from checkpoints.models import Plan, Run
from tests.agents.api.test_doors import refusal
from tests.agents.remote.outside_program import ACTION, SCHEMA, STEPS, WIRE, Program
from tests.factories import MEMBER, make_policy, make_team, make_user
from tests.factories.tokens import bearing, make_token


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


@pytest.mark.parametrize("named", ["", "strict"])
def test_a_posted_gate_is_under_the_tokens_own(named: str) -> None:
    program = bound()
    told = program.ok(posted(program, policy=named))
    assert Gate.objects.get(pk=told["gate"]).policy.name == "strict"


@pytest.mark.parametrize("named", ["mild", "default", "nothing-such"])
def test_a_posted_gate_under_another_is_refused(named: str) -> None:
    program = bound()
    told = refusal(posted(program, policy=named), 403)
    assert (told["code"], "only under the policy strict" in told["detail"]) == ("not_allowed", True)
    assert not Run.objects.filter(team=program.team).exists()


@pytest.mark.parametrize("named", ["", "mild"])
def test_a_plan_whose_gate_is_under_another_is_not_registered(named: str) -> None:
    program = bound()
    body = {"version": "1", "state_schema": SCHEMA, "steps": steps(named)}
    told = refusal(program.post(f"agents/{program.agent}/versions", body), 422)
    assert [each["parameter"] for each in told["errors"]] == ["/steps/1/policy"]
    assert not Plan.objects.filter(agent=program.agent).exists()


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


def test_what_its_plan_says_is_asked_where_that_is_the_tokens_own() -> None:
    program = bound()
    program.register(steps=steps("strict"))
    program.run = program.ok(program.post("runs", {"input": {"invoice": {}}}))["id"]
    program.claim()
    program.draft()
    assert Gate.objects.get(pk=program.ask()["gate"]).policy.name == "strict"


def test_a_policy_that_there_is_not_is_named_with_those_that_there_are() -> None:
    """It was taken for the team's default."""
    program = Program()
    make_policy(program.team, name="payouts")
    told = refusal(posted(program, policy="payuots"), 422)
    assert told["errors"] == [
        {
            "parameter": "/policy",
            "detail": f"{program.team.name} has no policy payuots; it has payouts. Name one of these, or make payuots "
            "in the administration, and try again.",
        }
    ]
    assert not Run.objects.filter(team=program.team).exists()


def test_a_plan_whose_gate_names_a_policy_that_its_runs_team_has_not_asks_once_there_is_one() -> None:
    """It asked under the team's default, which may want less."""
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


def test_a_gate_without_a_policy_is_refused_where_the_team_has_only_named_ones() -> None:
    """A `default` was made on the spot, which asks for one person and no password."""
    program = Program()
    make_policy(program.team, name="payouts", quorum=2, step_up=True)
    told = refusal(posted(program), 422)
    assert [each["parameter"] for each in told["errors"]] == ["/policy"]
    assert told["errors"][0]["detail"] == (
        f"{program.team.name} has no policy default, which a gate without a policy of its own uses; it has payouts. "
        "Name one of these, or make default in the administration, and try again."
    )
    assert not Run.objects.filter(team=program.team).exists()
    assert [each.name for each in Policy.objects.filter(team=program.team)] == ["payouts"]
    assert Gate.objects.get(pk=program.ok(posted(program, policy="payouts"))["gate"]).policy.quorum == 2
    make_policy(program.team, name="default")
    assert program.ok(posted(program))["gate"]


def test_a_run_whose_plan_names_no_policy_is_not_started_there_and_its_gate_not_asked() -> None:
    program = Program()
    program.start()
    program.draft()
    make_policy(program.team, name="payouts", quorum=2)
    told = refusal(program.work("gates", step="review", title="Wire", actions=[ACTION]), 422)
    assert "it has payouts" in told["errors"][0]["detail"]
    told = refusal(program.post("runs", {"agent": program.agent, "input": {"invoice": {}}}), 422)
    assert "it has payouts" in told["errors"][0]["detail"]
    assert [each.name for each in Policy.objects.filter(team=program.team)] == ["payouts"]
