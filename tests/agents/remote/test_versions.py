"""Versions of agents elsewhere: what one team registers is for its own runs, and what was registered last is run."""

from __future__ import annotations

from typing import Any

import pytest

from checkpoints.models import Event, Plan, Run
from checkpoints.runs.plans import spec_of
from checkpoints.values.canonical_json import decode_canonical
from tests.agents.api.test_doors import refusal
from tests.factories import MEMBER, make_team, make_user
from tests.factories.events import data_of
from tests.factories.tokens import bearing, make_token

from .outside_program import ACTION, SCHEMA, STEPS, WIRE, Program

LOOSE: list[dict[str, Any]] = [
    {"name": "wire", "kind": "effect", "reads": ["invoice"], "writes": ["receipt"], "irreversible": True,
     "guarded": False},
]  # fmt: skip


def started(program: Program, **more: Any) -> list[str]:
    """The steps of a run that the program starts."""
    told = program.ok(program.post("runs", {"agent": program.agent, "input": {"invoice": {}}, **more}))
    return [step.name for step in spec_of(Run.objects.select_related("plan").get(pk=told["id"]).plan).steps]


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("named", [{}, {"version": "1"}])
def test_a_version_that_another_team_registers_changes_no_run_of_this_one(version: str, named: dict[str, str]) -> None:
    """Whoever had a token for an agent of that name gave every team's runs a plan without a gate."""
    program = Program()
    program.register()
    stranger = Program(agent=program.agent)
    stranger.register(version=version, steps=LOOSE)
    assert started(program, **named) == [step["name"] for step in STEPS]
    assert started(stranger) == ["wire"]


def test_a_version_of_another_team_is_none_of_this_one() -> None:
    program = Program()
    program.register()
    stranger = Program(agent=program.agent)
    answer = stranger.post("runs", {"input": {"invoice": {}}})
    assert f"{stranger.team.name} has no agent" in refusal(answer, 422)["detail"]


def test_runs_of_another_team_keep_nobody_from_registering() -> None:
    program = Program()
    program.start()
    stranger = Program(agent=program.agent)
    stranger.register(steps=LOOSE)
    own = program.post(f"agents/{program.agent}/versions", {"version": "1", "state_schema": SCHEMA, "steps": LOOSE})
    assert "unfinished runs" in refusal(own, 422)["errors"][0]["detail"]


def test_registering_a_version_is_an_event_of_each_team_that_did_not_have_it() -> None:
    program = Program()
    registered = program.register()
    program.register()
    stranger = Program(agent=program.agent)
    stranger.register()
    told = Event.objects.filter(kind="plan.registered", team_id__in=(program.team.pk, stranger.team.pk)).order_by("pk")
    assert [event.team_id for event in told] == [program.team.pk, stranger.team.pk]
    assert data_of(told[0]) == registered
    assert (told[0].subject, told[0].actor) == (f"plan:{Plan.objects.get(agent=program.agent).pk}", told[1].actor)


def test_of_two_plans_of_a_version_the_one_registered_last_is_run() -> None:
    """What was registered anew, and had been before, was passed over for what came between."""
    program = Program()
    program.register()
    program.register(steps=LOOSE)
    program.register()
    assert started(program) == started(program, version="1") == [step["name"] for step in STEPS]


def test_an_older_version_that_is_registered_again_is_not_the_newest_by_that() -> None:
    """A process of the old version that begins anew beside those of the next one."""
    program = Program()
    program.register(steps=LOOSE)
    program.register(version="2")
    program.register(steps=LOOSE)
    assert started(program) == [step["name"] for step in STEPS]
    assert started(program, version="1") == ["wire"]


def test_a_posted_gate_is_no_version_to_start() -> None:
    program = Program()
    program.register()
    program.ok(program.post("gates", {"title": "Wire", "actions": [{"id": "wire", "arguments": WIRE}]}))
    assert started(program) == [step["name"] for step in STEPS]


def test_a_person_of_several_teams_registers_for_those_in_which_they_may_start_runs() -> None:
    first, second, third = make_team(may=MEMBER), make_team(may=MEMBER), make_team(may=())
    pia = make_user("Pia Programmer", first, second, third)
    program = Program(team=first, owner=pia)
    program.client = bearing(make_token(pia)[1])
    program.register()
    for team in (first, second):
        assert started(program, team=team.name) == [step["name"] for step in STEPS]
    ours = Program(team=third, agent=program.agent, owner=make_user("Tom Third", third, may=MEMBER))
    assert ours.post("runs", {"input": {"invoice": {}}}).status_code == 422


def test_a_run_that_is_under_way_keeps_its_own_plan() -> None:
    program = Program()
    program.start()
    program.draft()
    Program(agent=program.agent).register(steps=LOOSE)
    assert program.ok(program.work("gates", step="review", title="Wire", actions=[ACTION]))["status"] == "waiting"


def test_another_title_is_taken_while_runs_are_under_way_and_is_for_new_runs() -> None:
    program = Program()
    program.start()
    run = Run.objects.select_related("plan").get(pk=program.run)
    program.register(steps=[*STEPS[:-1], {**STEPS[-1], "title": "Write the report"}])
    later = program.ok(program.post("runs", {"agent": program.agent, "input": {"invoice": {}}}))
    plans = [each.plan for each in (run, Run.objects.select_related("plan").get(pk=later["id"]))]
    run.refresh_from_db()
    sent = [
        next(each.get("title") for each in decode_canonical(bytes(plan.body))["steps"] if each["name"] == "report")
        for plan in plans
    ]
    assert sent[1] == "Write the report"
    assert [spec_of(plan).step("report").title for plan in plans] == ["report", "report"], "ours is its name"


def test_a_title_that_is_no_plain_line_is_refused() -> None:
    program = Program()
    steps = [*STEPS[:-1], {**STEPS[-1], "title": "Wire\u202e"}]
    own = program.post(f"agents/{program.agent}/versions", {"version": "1", "state_schema": SCHEMA, "steps": steps})
    assert "one line of plain words" in refusal(own, 422)["errors"][0]["detail"]
