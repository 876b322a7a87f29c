"""What a web process keeps of what programs sent: bounded, and gone with what it belongs to."""

from __future__ import annotations

import gc
import json
from typing import Any
from weakref import ref

from agents import Agent
from agents.definition import fields
from agents.definition.registered import RegisteredAgent
from agents.remote import plans, states
from checkpoints.models import Plan
from checkpoints.runs import plans as stored_plans
from checkpoints.runs.plans import PlanSpec

from .outside_program import STEPS, Program

SCHEMA = {"type": "object", "properties": {"log": {"type": "array", "items": {"type": "string"}}}}


def test_what_is_derived_of_a_states_class_goes_with_it() -> None:
    """Adapters were kept by a class for ever, and every posted gate's schema made a class of its own."""
    state = states.state_of(SCHEMA)
    assert fields.dumped(state, "log", ["a"]) == ["a"]
    assert fields.item_adapter(state, "log") is fields.item_adapter(state, "log")
    assert fields.adapter(state, "log") is fields.adapter(state, "log")
    gone = ref(state)
    del state
    gc.collect()
    assert gone() is None


def test_plans_are_kept_by_their_fields_and_not_by_their_number() -> None:
    large = PlanSpec("large", "1", "", {"properties": {f"field{n}": {} for n in range(plans.FIELDS)}}, ())
    assert plans._weight(large) == plans.FIELDS + 1
    assert plans._weight(RegisteredAgent(Agent, large, Plan())) == plans.FIELDS + 1
    assert plans._weight(None) == 1
    assert getattr(plans.registered.cache, "maxsize", 0) == plans.KEPT


def test_a_field_with_a_large_schema_weighs_as_much_as_many() -> None:
    """Three hundred plans of one field each, and of 200 kB, were kept as if they were small."""
    heavy = PlanSpec("heavy", "1", "", {"properties": {"choice": {"enum": [f"{n:0100}" for n in range(2000)]}}}, ())
    assert plans._weight(heavy) > 200_000 // plans.LIKE_A_FIELD
    program = Program()
    work = {"name": "work", "kind": "step", "reads": [], "writes": ["choice"], "code_hash": "aa" * 32}
    program.register(state_schema=heavy.state_schema | {"type": "object"}, steps=[work])
    kept: Any = stored_plans._read.cache
    assert kept.maxsize == stored_plans.READ
    spec = stored_plans.spec_of(Plan.objects.filter(agent=program.agent).latest("pk"))
    assert kept.getsizeof(spec) > 200_000


def test_a_state_of_more_fields_than_anybody_writes_is_refused() -> None:
    properties: dict[str, object] = {f"field{n}": {} for n in range(plans.FIELDS + 1)}
    program = Program()
    body = {"version": "1", "state_schema": {"type": "object", "properties": properties}, "steps": STEPS}
    answer = program.post(f"agents/{program.agent}/versions", body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0] == {
        "parameter": "/state_schema/properties",
        "detail": f"has more than {plans.FIELDS} fields; put some into an object",
    }


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
