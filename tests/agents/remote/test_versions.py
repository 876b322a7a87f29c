"""Versions of agents elsewhere: what one team registers is for its own runs, and what was registered last is run.

What a web process keeps of them is bounded, and gone with what it belongs to.
"""

from __future__ import annotations

import gc
import json
from typing import Any
from weakref import ref

from agents import Agent
from agents.definition import fields
from agents.definition.registered import RegisteredAgent
from agents.remote import plans
from checkpoints.models import Event, Plan, Run
from checkpoints.runs import plans as stored_plans
from checkpoints.runs.plans import PlanSpec, spec_of
from checkpoints.values.canonical_json import decode_canonical
from tests.agents.api.test_doors import refusal
from tests.agents.remote.outside_program import SCHEMA, STEPS, WIRE, Program
from tests.factories import MEMBER, make_team, make_user
from tests.factories.events import data_of
from tests.factories.tokens import bearing, make_token

LOOSE: list[dict[str, Any]] = [
    {"name": "wire", "kind": "effect", "reads": ["invoice"], "writes": ["receipt"], "irreversible": True,
     "guarded": False},
]  # fmt: skip
LOGS = {"type": "object", "properties": {"log": {"type": "array", "items": {"type": "string"}}}}


def started(program: Program, **more: Any) -> list[str]:
    """The steps of a run that the program starts."""
    told = program.ok(program.post("runs", {"agent": program.agent, "input": {"invoice": {}}, **more}))
    return [step.name for step in spec_of(Run.objects.select_related("plan").get(pk=told["id"]).plan).steps]


def test_a_version_that_another_team_registers_changes_no_run_of_this_one_and_is_none_of_this_one() -> None:
    """Whoever had a token for an agent of that name gave every team's runs a plan without a gate."""
    program = Program()
    stranger = Program(agent=program.agent)
    program.register()
    assert (
        f"{stranger.team.name} has no agent"
        in refusal(stranger.post("runs", {"input": {"invoice": {}}}), 422)["detail"]
    )
    for version in ("1", "2"):
        stranger.register(version=version, steps=LOOSE)
        assert started(program) == started(program, version="1") == [step["name"] for step in STEPS]
        assert started(stranger) == ["wire"]


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


def test_of_two_plans_of_a_version_the_one_registered_last_is_run_and_an_older_one_is_not_the_newest() -> None:
    """What was registered anew, and had been before, was passed over for what came between."""
    program, again = Program(), Program()
    program.register()
    program.register(steps=LOOSE)
    program.register()
    program.ok(program.post("gates", {"title": "Wire", "actions": [{"id": "wire", "arguments": WIRE}]}))  # no version
    assert started(program) == started(program, version="1") == [step["name"] for step in STEPS]
    again.register(steps=LOOSE)
    again.register(version="2")
    again.register(steps=LOOSE)  # a process of the old version that begins anew beside those of the next one
    assert started(again) == [step["name"] for step in STEPS]
    assert started(again, version="1") == ["wire"]


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


def test_what_is_derived_of_a_states_class_goes_with_it() -> None:
    """Adapters were kept by a class for ever, and every posted gate's schema made a class of its own."""
    state = plans.state_of(LOGS)
    assert fields.dumped(state, "log", ["a"]) == ["a"]
    assert fields.item_adapter(state, "log") is fields.item_adapter(state, "log")
    assert fields.adapter(state, "log") is fields.adapter(state, "log")
    gone = ref(state)
    del state
    gc.collect()
    assert gone() is None


def test_plans_are_kept_by_their_fields_and_a_large_schema_weighs_as_much_as_many() -> None:
    """Three hundred plans of one field each, and of 200 kB, were kept as if they were small."""
    cache: Any = plans.registered.cache
    large = PlanSpec("large", "1", "", {"properties": {f"field{n}": {} for n in range(plans.FIELDS)}}, ())
    heavy = PlanSpec("heavy", "1", "", {"properties": {"choice": {"enum": [f"{n:0100}" for n in range(2000)]}}}, ())
    weights = [cache.getsizeof(RegisteredAgent(Agent, spec, Plan())) for spec in (large, heavy)]
    assert weights[0] == plans.FIELDS + 1
    assert weights[1] > 200_000 // plans.LIKE_A_FIELD
    stored: Any = stored_plans._read.cache
    assert stored.getsizeof(heavy) > 200_000


def test_a_refused_body_is_let_go_at_once() -> None:
    """The error's frames held the body in a ring, so that some megabytes of each stayed until the collector came."""
    program = Program()
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            answer = program.client.post(
                "/api/gates", json.dumps({f"no such {n}": [n] for n in range(500)}), content_type="application/json"
            )
            assert answer.status_code == 422
        del answer
        kept = [each for each in gc.get_objects() if type(each) is dict and "no such 7" in each]
    finally:
        gc.enable()
    assert kept == []
