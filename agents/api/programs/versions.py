"""Registering a version of an external agent: its steps, and the schema of its state."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import Field

from agents.access import reader_of
from agents.api.gates.cards import SCHEMA
from agents.api.protocol import (
    AgentName,
    ApiSchema,
    Hex,
    Key,
    actor_of,
    answer_json,
    do_once,
    one_of,
    require_scope,
    token_of,
)
from agents.api.runs.moves import Order
from agents.definition.decorators import default_of
from agents.models import TokenScope
from agents.remote import plans as outside
from agents.remote import policy_of_token
from agents.work_errors import WorkNotAllowed
from checkpoints.access.missing_permission import say_missing_permission
from checkpoints.access.permissions import START_RUN, teams_where
from checkpoints.runs.plans import PlanSpec, StepSpec

from .starting import POLICY, VERSION, agent_of

OWN = "-"  # no agent's name
router = Router(tags=["agents"], auth=require_scope(TokenScope.START))


def _option(name: str, description: str, **more: Any) -> Any:
    return Field(default_of(name), description=description, **more)


class StepBody(Order):
    """One step of a plan."""

    example: ClassVar = {
        "name": "wire", "kind": "effect", "doc": "Wire the money.", "reads": ["payment"], "code_hash": "",
        "policy": "payouts", "feedback": "", "ends": False,
    }  # fmt: skip

    name: str = Field(min_length=1, max_length=100)
    """Its name."""
    kind: Annotated[str, one_of(("step", "effect", "gate"))] = Field("step", pattern="^(step|effect|gate)$")
    """Its kind."""
    title: str = _option(
        "title", "Its title for people; empty: made from its name.", max_length=100, examples=["Wire it"]
    )
    doc: str = Field("", max_length=2000)
    """What it does, for people."""
    reads: list[str] = Field([], max_length=500)
    """The fields of the state that it reads."""
    writes: list[str] = _option("writes", "The fields that it writes.", max_length=500, examples=[["receipt"]])
    code_hash: str = Field("", pattern="^([0-9a-f]{2}){0,64}$")
    """A hash of its code, in hex. If the hash and what the step reads are unchanged, its earlier result is reused after
    a rewind; without a hash it always runs."""
    reads_world: bool = _option("reads_world", "Whether it calls an external system.", examples=[False])
    undo: str = _option("undo", "For an effect: what undoes it.", max_length=100, examples=["cancel_wire"])
    irreversible: bool = _option("irreversible", "For an effect: whether it cannot be undone.", examples=[False])
    idempotent: bool = _option(
        "idempotent", "For an effect: whether it may be sent twice with the same key.", examples=[True]
    )
    guarded: bool = _option("guarded", "For an effect: whether a gate must allow it.", examples=[True])
    action: str = _option(
        "action",
        "For an effect that performs several actions: the field that names the next one.",
        max_length=100,
        examples=[""],
    )
    responds: str = _option(
        "responds", "For an effect: the field that receives a person's answer.", max_length=100, examples=[""]
    )
    policy: str = Field("", pattern=POLICY)
    """For a gate: the policy by which people decide."""
    allows: list[str] = _option(
        "allows", "For a gate: the effects that an approval allows.", max_length=200, examples=[["wire"]]
    )
    edits: list[str] = _option(
        "edits", "For a gate: the fields that people may edit.", max_length=500, examples=[["payment"]]
    )
    on_reject: str = _option(
        "on_reject", "For a gate: the step that a rejection goes back to.", max_length=100, examples=["draft"]
    )
    on_expire: str = _option(
        "on_expire", "For a gate: the step to go on with when nobody decides in time.", max_length=100, examples=[""]
    )
    waits: bool = _option(
        "waits",
        "For a gate: whether the run waits at it. Else it goes on with what does not depend on the decision.",
        examples=[True],
    )
    feedback: str = Field("", max_length=100)
    """For a gate: the list field that receives people's feedback."""
    jumps: list[str] = _option(
        "jumps", "Steps that it may go to instead of the next one.", max_length=200, examples=[[]]
    )
    ends: bool = False
    """Whether it may end the run."""
    retry: int = _option("retry", "Further attempts after a failure.", ge=0, le=1000, examples=[3])
    backoff: float = _option("backoff", "Seconds before the second attempt; doubles.", ge=0, le=86400, examples=[1.0])
    loop_guard: int = _option(
        "loop_guard", "After how many executions people are asked; 0: never.", ge=0, le=10**6, examples=[0]
    )

    def spec(self) -> StepSpec:
        """Return the step as a plan holds it."""
        values = self.model_dump()
        guarded = values.pop("guarded") and self.kind == "effect"
        lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
        return StepSpec(**{**values, **lists, "guarded": guarded, "asks": self.kind == "gate"})


STEPS: list[dict[str, Any]] = [
    {"name": "draft", "kind": "step", "reads": ["invoice"], "writes": ["payment"]},
    {"name": "review", "kind": "gate", "reads": ["invoice", "payment"], "allows": ["wire"], "edits": ["payment"],
     "on_reject": "draft"},
    {"name": "wire", "kind": "effect", "reads": ["payment"], "writes": ["receipt"], "undo": "cancel_wire"},
]  # fmt: skip


class Version(Order):
    """A version of an external agent: its steps, and the schema of its state."""

    example: ClassVar = {
        "format": 1, "version": "1", "doc": "Pay invoices.",
        "state_schema": {
            "type": "object", "properties": {"invoice": {}, "payment": SCHEMA, "receipt": {"type": "object"}},
            "required": ["invoice"],
        },
        "steps": STEPS, "signals": {"delivered": {"type": "object"}, "stop": {"type": "null"}},
    }  # fmt: skip

    format: Literal[1] = 1
    """The version of this format; 1."""
    version: str = Field(pattern=VERSION)
    """The version."""
    doc: str = Field("", max_length=5000)
    """What the agent does, for people."""
    state_schema: dict[str, Any]
    """The JSON Schema of its state: an object with a property for each field."""  # fmt: skip
    steps: list[StepBody] = Field(min_length=1, max_length=outside.STEPS)
    """Its steps, in the order in which they run."""
    signals: dict[str, dict[str, Any]] = Field({}, max_length=100)
    """The signals that its runs take, each with the JSON Schema of its value: `null` for one without."""


class Registered(ApiSchema):
    """A version that was registered."""

    example: ClassVar = {"agent": "payouts", "version": "1", "digest": "ab" * 32}

    agent: str
    """The agent's name."""
    version: str
    """The version."""
    digest: Hex
    """SHA-256 over the plan, in hex."""


@router.post("/{agent}/versions", response={201: Registered}, summary="Register a version")
def register_version(request: HttpRequest, agent: AgentName, order: Version, key: Key) -> HttpResponse:
    """Register a version of an external agent, for the teams in which you may start runs.

    The same version again with the same plan changes nothing. With a token for one agent, `-` stands for that agent.
    """
    name = agent_of(request, "" if agent == OWN else agent)
    by = reader_of(request)
    teams = list(teams_where(by, START_RUN).values_list("pk", flat=True))
    if not teams:
        raise WorkNotAllowed(say_missing_permission(by, START_RUN))
    steps = tuple(step.spec() for step in order.steps)
    spec = PlanSpec(name, order.version, order.doc, order.state_schema, steps, order.signals)

    policy_of_token.check_plan(token_of(request), spec.steps)

    def do() -> HttpResponse:
        plan = outside.register(spec, teams=teams, by=actor_of(request))
        return answer_json(Registered.from_orm(plan), http_status=201)

    return do_once(request, key, do)
