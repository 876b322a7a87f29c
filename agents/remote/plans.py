"""Versions of external agents: a plan as it was sent, checked like a class's plan, and the agent made from it.

A plan's row is found by its digest, so the same version registered twice is one row. It is registered for teams, and
only they can start runs by it; another plan under the same version is refused while runs of theirs by the
first are under way, as it is for agents whose code is here.

The state is a pydantic model made from its JSON Schema, which the engine reads and writes by. The schema comes from
outside and is as little trusted as a value: it is read by approvals.schema.validate, which follows no reference out of
it and runs no pattern that backtracks.
"""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from threading import RLock
from typing import Annotated, Any, ClassVar, Self, cast

from cachetools import LRUCache, cached
from django.db import transaction
from django.db.models import Exists, OuterRef
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic_core import InitErrorDetails, PydanticCustomError, core_schema

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

FIELD = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}")
STEP = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,99}")
STEPS = 200  # of one plan
LARGEST, FIELDS = 256 * 1024, 1000  # bytes and fields of a state's schema
LIKE_A_FIELD = 750  # bytes of a schema whose parsed form costs as much memory as one field of a pydantic model
KEPT = 2000  # fields of all plans that a process keeps: each takes about 15 KB in pydantic
TAKEN = "model_"  # pydantic's own names
Fault = tuple[str, str]  # a JSON Pointer into what was sent, and a sentence
NULL = {"type": "null"}


def list_errors(faults: Iterable[Fault]) -> list[FieldError]:
    """Return faults as a refusal lists them."""
    return [FieldError(pointer=pointer, message=message) for pointer, message in faults]


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
            raise PlanRefused(list_errors([("/version", words)]))
    return plan


@cached(LRUCache(KEPT, _weight), lock=RLock())
def _checked(body: bytes) -> PlanSpec:
    """Return the plan if its schema is sound, checked once a process: equal plans share one.

    Raises PlanRefused.
    """
    spec = PlanSpec.from_json(decode_canonical(body))
    if any(name == spec.agent for name, _ in registry.agents()):
        raise PlanRefused(list_errors([("", f"{spec.agent} is an agent of this server")]))
    with validate.counted():
        # Only a valid schema can be searched for what a step reads.
        faults = list(_schema_faults(spec.state_schema)) or list(_step_faults(spec))
        faults += _signal_faults(spec.signals)
        if faults:
            raise PlanRefused(list_errors(faults))
        whole = replace(spec, state_schema=completed(spec.state_schema))
        if validate.used_up():
            raise PlanRefused(list_errors([("/state_schema", "its fields refer to too much; simplify the schema")]))
    try:
        plan_builder.check_flow(whole)
    except AgentError as error:
        raise PlanRefused(list_errors([("/steps", str(error))])) from error
    return whole


@cached(LRUCache(KEPT, _weight), lock=RLock())
def registered(plan_id: int) -> RegisteredAgent | None:
    """Return the agent made from an external plan; None for any other plan."""
    plan = Plan.objects.filter(pk=plan_id, external=True).first()
    return None if plan is None else declared(plan)


def declared(plan: Plan) -> RegisteredAgent:
    """Make a class of the plan's agent: its state, and no methods, since its code is elsewhere."""
    spec = spec_of(plan)
    state = state_of(spec.state_schema)
    body = {"name": spec.agent, "version": spec.version, "State": state, "invariants": invariants.EDITS}
    agent = AgentType("Outside", (Agent,), body)
    return RegisteredAgent(cast(type[Agent], agent), spec, plan)


def _schema_faults(schema: Mapping[str, Any]) -> Iterator[Fault]:
    if len(encode_canonical(dict(schema))) > LARGEST:
        yield "/state_schema", f"is larger than {LARGEST} bytes; declare fewer names"
        return
    if wrong := validate.unusable(schema):
        yield "/state_schema", wrong
        return
    properties = schema.get("properties", {})
    if schema.get("type", "object") != "object" or not isinstance(properties, Mapping):
        yield "/state_schema", "a state must be an object with properties"
        return
    if len(properties) > FIELDS:
        yield "/state_schema/properties", f"has more than {FIELDS} fields; put some into an object"
        return
    for name, part in properties.items():
        at = json_pointer.join("/state_schema/properties", name)
        if not FIELD.fullmatch(name) or name.startswith(TAKEN):
            yield at, f"a field's name is {FIELD.pattern}, and does not begin with {TAKEN}"
        if not isinstance(part, Mapping):
            yield at, "a field's schema must be an object"


def _signal_faults(signals: Mapping[str, Any]) -> Iterator[Fault]:
    if len(encode_canonical(dict(signals))) > LARGEST:
        yield "/signals", f"is larger than {LARGEST} bytes; declare fewer"
        return
    for name, schema in signals.items():
        at = f"/signals{json_pointer.make_pointer(name)}"
        if not plan_builder.NAME.fullmatch(name):
            yield at, "must have only small letters, digits, - and _, a letter first"
        elif wrong := validate.unusable(schema):
            yield at, wrong


def _step_faults(spec: PlanSpec) -> Iterator[Fault]:
    if not spec.steps or len(spec.steps) > STEPS:
        yield "/steps", f"a plan must have 1 to {STEPS} steps"
    known = set(spec.state_schema.get("properties", {}))
    names = [step.name for step in spec.steps]
    for number, step in enumerate(spec.steps):
        at = f"/steps/{number}"
        if not STEP.fullmatch(step.name):
            yield f"{at}/name", "must have only letters, digits and . _ : - and at most 100 characters"
        if names.index(step.name) != number:
            yield f"{at}/name", f"{step.name} is used twice"
        for option, wrong in plan_builder.faults_of(step, known):
            yield f"{at}/{option}".rstrip("/"), f"{step.name} {wrong}"
        if step.kind == "gate" and step.feedback and step.feedback not in known:
            yield f"{at}/feedback", f"{step.feedback} is not in the state's schema"


class Held:
    """An annotation: the value must be valid under a schema; with `optional` it may be null."""

    def __init__(self, schema: Mapping[str, Any], *, optional: bool = False) -> None:
        self.schema, self.optional = schema, optional

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        """Return a schema that checks by JSON Schema and writes the value as it is."""
        return core_schema.no_info_plain_validator_function(self.checked)

    def checked(self, value: Any) -> Any:
        """Return a valid value. Raises an error that pydantic reports."""
        for place, message in self.faults(value):
            raise _error(f"{place}: {message}" if place else message)
        return value

    def faults(self, value: Any) -> list[tuple[str, str]]:
        """List the faults as (JSON Pointer, message)."""
        if not self.schema or (self.optional and value is None):
            return []
        return validate.faults_of(self.schema, value)


def state_of(schema: Mapping[str, Any]) -> type[BaseModel]:
    """Return the model of a state with the properties of `schema`, an object's JSON Schema with its definitions.

    A property that is not required may be null, and starts as its default, else null, or empty for a list. Others are
    taken as they are only where the schema says so by `additionalProperties`.
    """
    required = set(schema.get("required", ()))
    beside = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    members: dict[str, Any] = {}
    held: dict[str, Held] = {}
    for name, part in schema.get("properties", {}).items():
        optional = name not in required
        listed = _lists(part)
        held[name] = Held({**_bare(part), **beside} if part else {}, optional=optional and not listed)
        kind = _annotated(held[name], part, beside) if listed else Annotated[Any, held[name]]
        start = part.get("default", [] if listed else None)
        members[name] = (kind, Field(default_factory=partial(copy.deepcopy, start)) if optional else ...)
    with warnings.catch_warnings():  # a field may have the name of one of pydantic's own attributes
        warnings.simplefilter("ignore", UserWarning)
        base: type[_State] = _OpenState if schema.get("additionalProperties") is True else _State
        made = create_model("State", __base__=base, **members)
    made.described, made.field_checks = dict(schema), held
    return made


def completed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema as the plan keeps it: an optional property may be null."""
    required, kept = set(schema.get("required", ())), {}
    for name, part in schema.get("properties", {}).items():
        fixed = name in required or _lists(part)
        kept[name] = part if fixed else _or_null(part, {"$defs": schema.get("$defs", {})})
    return {"type": "object", "additionalProperties": False, **schema, "properties": kept}


class _State(BaseModel):
    """The base of such states: its own schema, and each fault at its exact place."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())
    described: ClassVar[dict[str, Any]] = {}
    field_checks: ClassVar[dict[str, Held]] = {}

    @classmethod
    def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the schema that was registered."""
        return cls.described

    @classmethod
    def model_validate(cls, obj: Any, **kwargs: Any) -> Self:
        """Validate as pydantic does, with every fault at its own place."""
        lines: list[InitErrorDetails] = []
        with validate.counted():
            for name, value in obj.items() if isinstance(obj, Mapping) else ():
                for place, message in cls.field_checks[name].faults(value) if name in cls.field_checks else ():
                    lines.append(
                        {"type": _error(message), "loc": (name, *json_pointer.split_pointer(place)), "input": value}
                    )
            if lines:
                raise ValidationError.from_exception_data("State", lines)
            return super().model_validate(obj, **kwargs)


class _OpenState(_State):
    """The base of states that may have any fields."""

    model_config = ConfigDict(extra="allow")


def _annotated(list_check: Held, part: Mapping[str, Any], definitions: Mapping[str, Any]) -> Any:
    """Annotate a list and its items, so that an appended item is checked alone."""
    items = part.get("items", {})
    item = Held({**items, **definitions} if items else {})
    return Annotated[list[Annotated[Any, item]], list_check]


def _lists(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "array" and isinstance(schema.get("items", {}), Mapping)


def _or_null(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    if not schema or not validate.faults_of({**schema, **definitions}, None):
        return dict(schema)
    kept = {name: value for name, value in schema.items() if name in ("title", "description")}
    bare = {name: value for name, value in schema.items() if name not in (*kept, "default")}
    return {**kept, "anyOf": [bare, dict(NULL)], "default": schema.get("default")}


def _bare(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema without the null that `_or_null` added, so that faults are reported at their own places."""
    either = schema.get("anyOf", [])
    return either[0] if len(either) == 2 and either[1] == NULL else schema


def _error(message: str) -> PydanticCustomError:
    return PydanticCustomError("schema", "{said}", {"said": message})
