"""Versions of external agents: a plan as it was sent, checked like a class's plan, and the agent made from it.

A plan's row is found by its digest, so the same version registered twice is one row. It is registered for teams, and
only they can start runs by it; another plan under the same version is refused while runs of theirs by the
first are under way, as it is for agents whose code is here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from threading import RLock
from typing import Any, cast

from cachetools import LRUCache, cached
from django.db import transaction
from django.db.models import Exists, OuterRef

from agents.definition import invariants, plan_builder, registry
from agents.definition.agent import Agent, AgentType
from agents.definition.registered import RegisteredAgent
from agents.errors import AgentError, FieldError
from agents.models import Registration
from agents.work_errors import PlanRefused
from approvals.schema import validate
from checkpoints.actors import Actor
from checkpoints.models import Plan, Run
from checkpoints.runs import plans as stored
from checkpoints.runs.plans import PlanSpec, spec_of
from checkpoints.values import json_pointer
from checkpoints.values.canonical_json import decode_canonical, encode_canonical

from . import states

FIELD = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}")
STEP = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,99}")
STEPS = 200  # of one plan
LARGEST, FIELDS = 256 * 1024, 1000  # bytes and fields of a state's schema
LIKE_A_FIELD = 750  # bytes of a schema whose parsed form costs as much memory as one field of a pydantic model
KEPT = 2000  # fields of all plans that a process keeps: each takes about 15 KB in pydantic
TAKEN = "model_"  # pydantic's own names


def keep(spec: PlanSpec) -> Plan:
    """Store the plan of an external version. Raises PlanRefused with every fault at once."""
    return stored.keep(_checked(encode_canonical(spec.to_json())), external=True)


def _weight(known: PlanSpec | RegisteredAgent | None) -> int:
    """Count the fields of a plan, each of which costs memory in the cache; a large schema counts as more."""
    spec = known.spec if isinstance(known, RegisteredAgent) else known
    if spec is None:
        return 1
    return 1 + max(
        len(spec.state_schema.get("properties", {})), len(encode_canonical(spec.state_schema)) // LIKE_A_FIELD
    )


def register(spec: PlanSpec, *, teams: Collection[int], by: Actor) -> Plan:
    """Store the plan, and register it as this version for these teams. Raises PlanRefused."""
    with transaction.atomic():
        plan = keep(spec)
        Registration.objects.say(plan, teams=teams, by=by)
        live = Run.objects.filter(plan=OuterRef("pk"), team__in=teams, status__in=Run.LIVE)
        others = Plan.objects.filter(Exists(live), agent=plan.agent, version=plan.version).exclude(pk=plan.pk)
        if any(spec_of(other).untitled() != spec_of(plan).untitled() for other in others):
            words = "another plan of this version has unfinished runs; choose a new version"
            raise PlanRefused([FieldError(pointer="/version", message=words)])
    return plan


@cached(LRUCache(KEPT, _weight), lock=RLock())
def _checked(body: bytes) -> PlanSpec:
    """Return the plan if its schema is sound, checked once a process: equal plans share one.

    Raises PlanRefused.
    """
    spec = PlanSpec.from_json(decode_canonical(body))
    if any(name == spec.agent for name, _ in registry.agents()):
        raise PlanRefused([FieldError(pointer="", message=f"{spec.agent} is an agent of this server")])
    with validate.counted():
        # Only a valid schema can be searched for what a step reads.
        faults = list(_schema_faults(spec.state_schema)) or list(_step_faults(spec))
        faults += _signal_faults(spec.signals)
        if faults:
            raise PlanRefused(faults)
        whole = replace(spec, state_schema=states.completed(spec.state_schema))
        if validate.used_up():
            words = "its fields refer to too much; simplify the schema"
            raise PlanRefused([FieldError(pointer="/state_schema", message=words)])
    try:
        plan_builder.check_flow(whole)
    except AgentError as error:
        raise PlanRefused([FieldError(pointer="/steps", message=str(error))]) from error
    return whole


@cached(LRUCache(KEPT, _weight), lock=RLock())
def registered(plan_id: int) -> RegisteredAgent | None:
    """Return the agent made from an external plan; None for any other plan."""
    plan = Plan.objects.filter(pk=plan_id, external=True).first()
    return None if plan is None else declared(plan)


def declared(plan: Plan) -> RegisteredAgent:
    """Make a class of the plan's agent: its state, and no methods, since its code is elsewhere."""
    spec = spec_of(plan)
    state = states.state_of(spec.state_schema)
    body = {"name": spec.agent, "version": spec.version, "State": state, "invariants": invariants.EDITS}
    agent = AgentType("Outside", (Agent,), body)
    return RegisteredAgent(cast(type[Agent], agent), spec, plan)


def _schema_faults(schema: Mapping[str, Any]) -> Iterator[FieldError]:
    if len(encode_canonical(dict(schema))) > LARGEST:
        yield FieldError(pointer="/state_schema", message=f"is larger than {LARGEST} bytes; declare fewer names")
        return
    if wrong := validate.unusable(schema):
        yield FieldError(pointer="/state_schema", message=wrong)
        return
    properties = schema.get("properties", {})
    if schema.get("type", "object") != "object" or not isinstance(properties, Mapping):
        yield FieldError(pointer="/state_schema", message="a state must be an object with properties")
        return
    if len(properties) > FIELDS:
        words = f"has more than {FIELDS} fields; put some into an object"
        yield FieldError(pointer="/state_schema/properties", message=words)
        return
    for name, part in properties.items():
        at = json_pointer.join("/state_schema/properties", name)
        if not FIELD.fullmatch(name) or name.startswith(TAKEN):
            yield FieldError(pointer=at, message=f"a field's name is {FIELD.pattern}, and does not begin with {TAKEN}")
        if not isinstance(part, Mapping):
            yield FieldError(pointer=at, message="a field's schema must be an object")


def _signal_faults(signals: Mapping[str, Any]) -> Iterator[FieldError]:
    if len(encode_canonical(dict(signals))) > LARGEST:
        yield FieldError(pointer="/signals", message=f"is larger than {LARGEST} bytes; declare fewer")
        return
    for name, schema in signals.items():
        at = f"/signals{json_pointer.make_pointer(name)}"
        if not plan_builder.NAME.fullmatch(name):
            yield FieldError(pointer=at, message="must have only small letters, digits, - and _, a letter first")
        elif wrong := validate.unusable(schema):
            yield FieldError(pointer=at, message=wrong)


def _step_faults(spec: PlanSpec) -> Iterator[FieldError]:
    if not spec.steps or len(spec.steps) > STEPS:
        yield FieldError(pointer="/steps", message=f"a plan must have 1 to {STEPS} steps")
    known = set(spec.state_schema.get("properties", {}))
    names = [step.name for step in spec.steps]
    for number, step in enumerate(spec.steps):
        at = f"/steps/{number}"
        if not STEP.fullmatch(step.name):
            words = "must have only letters, digits and . _ : - and at most 100 characters"
            yield FieldError(pointer=f"{at}/name", message=words)
        if names.index(step.name) != number:
            yield FieldError(pointer=f"{at}/name", message=f"{step.name} is used twice")
        for option, wrong in plan_builder.faults_of(step, known):
            yield FieldError(pointer=f"{at}/{option}".rstrip("/"), message=f"{step.name} {wrong}")
        if step.kind == "gate" and step.feedback and step.feedback not in known:
            yield FieldError(pointer=f"{at}/feedback", message=f"{step.feedback} is not in the state's schema")
