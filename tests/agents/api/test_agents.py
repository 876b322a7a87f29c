"""Agents over the API: who may know of them, and what is told."""

from __future__ import annotations

from dataclasses import fields

import pytest

from agents.api.programs.versions import StepBody
from agents.definition.decorators import EffectOptions, GateOptions, StepOptions, default_of
from checkpoints.values.canonical_json import encode_canonical
from tests.factories import MEMBER, READER, ann, bob, make_plan, make_run, make_spec, make_team, make_user, unique
from tests.harness.signed_in_clients import signed_in

from .sent_requests import ask
from .test_doors import refusal


def test_an_agent_is_told_with_its_versions_its_steps_and_the_schema_of_its_state() -> None:
    team, name = make_team(may=READER), unique("robo")
    old, new = (make_plan(make_spec(name, version=version)) for version in ("1", "2"))
    for plan in (old, new):
        make_run(team=team, plan=plan)
    [summary] = ask(ann(team), "/api/agents")["items"]
    assert (summary["name"], summary["version"], summary["versions"]) == (name, "2", ["2", "1"])
    assert summary["deployed"] is False
    answer = signed_in(ann(team)).get(f"/api/agents/{name}", {"version": "1"})
    told, spec = answer.json(), make_spec(name, version="1")
    assert (told["version"], told["versions"]) == ("1", ["2", "1"])
    assert b'"state_schema":' + encode_canonical(spec.state_schema) + b"}" in answer.content
    assert [(step["name"], step["kind"]) for step in told["steps"]] == [(one.name, one.kind) for one in spec.steps]
    pay = next(step for step in told["steps"] if step["name"] == "pay")
    assert (pay["undo"], pay["guarded"]) == ("cancel_payment", True)
    assert ask(ann(team), f"/api/agents/{name}")["version"] == "2"


def test_a_version_that_there_is_not_is_not_there() -> None:
    team, plan = make_team(may=READER), make_plan(make_spec(unique("robo")))
    make_run(team=team, plan=plan)
    reader = signed_in(ann(team))
    assert "GET /api/agents lists" in refusal(reader.get(f"/api/agents/{plan.agent}", {"version": "99"}), 404)["detail"]


def test_a_version_of_which_only_others_have_runs_is_not_told() -> None:
    team, name = make_team(may=READER), unique("robo")
    mine, theirs = (make_plan(make_spec(name, version=version)) for version in ("1", "2"))
    make_run(team=team, plan=mine)
    make_run(team=make_team(), plan=theirs)
    told = ask(ann(team), f"/api/agents/{name}")
    assert (told["version"], told["versions"]) == ("1", ["1"])
    refusal(signed_in(ann(team)).get(f"/api/agents/{name}", {"version": "2"}), 404)


@pytest.mark.parametrize("may", [MEMBER, READER])
def test_whoever_may_start_runs_knows_what_is_deployed_and_nobody_else(may: tuple[str, ...]) -> None:
    reader = make_user("Bob Lindqvist", make_team(may=may))
    deployed = {each["name"] for each in ask(reader, "/api/agents")["items"] if each["deployed"]}
    assert ("refunds" in deployed) == (may == MEMBER)
    answer = signed_in(reader).get("/api/agents/refunds")
    assert answer.status_code == (200 if may == MEMBER else 404)


def test_nobody_learns_of_an_agent_by_another_teams_run() -> None:
    plan = make_plan(make_spec(unique("robo")))
    make_run(team=make_team(), plan=plan)
    refusal(signed_in(bob(make_team())).get(f"/api/agents/{plan.agent}"), 404)


def test_a_posted_step_has_the_defaults_of_a_declared_one() -> None:
    """A gate's policy may be left to the token, and feedback is read from the source where there is one."""
    declared = {each.name for kind in (StepOptions, EffectOptions, GateOptions) for each in fields(kind)}
    shared = declared & StepBody.model_fields.keys()
    assert len(shared) > 15
    apart = {name for name in shared if StepBody.model_fields[name].default != default_of(name)}
    assert apart == {"policy", "feedback"}
