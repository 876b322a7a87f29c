"""Agents: those that you may see or start, one, registering a version of one, and the tools that people registered."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from django.http import Http404, HttpRequest, HttpResponse
from ninja import Query, Router
from pydantic import Field

from agents.api.gates.cards import SCHEMA
from agents.api.programs.starting import POLICY, VERSION, agent_of
from agents.api.protocol.answers import Page, Paging, answer_json
from agents.api.protocol.auth import actor_of, require_scope, token_of
from agents.api.protocol.idempotency_keys import Key, do_once
from agents.api.protocol.schemas import AgentName, ApiSchema, Hex, Order, one_of
from agents.definition.decorators import default_of
from agents.models import TokenScope
from agents.remote import asking
from agents.remote import plans as outside
from agents.runs.query import KnownAgent, known_to
from agents.work_errors import WorkNotAllowed
from approvals.gates.lists.queues import seen_by
from approvals.models import Gate, Tool
from approvals.views.access import reader_of
from checkpoints.access.permissions import START_RUN, say_missing_permission, teams_where
from checkpoints.runs.plans import PlanSpec, StepSpec, spec_of
from checkpoints.values.canonical_json import encode_canonical

START = require_scope(TokenScope.START)
router = Router(tags=["agents"], auth=require_scope(TokenScope.READ))


class AgentSummary(ApiSchema):
    """An agent, in its newest version."""

    example: ClassVar = {
        "name": "refunds", "version": "1", "versions": ["2", "1"], "deployed": True, "doc": "Answer a refund.",
    }  # fmt: skip

    name: str
    """Its name."""
    version: str
    """The version that this answer describes."""
    versions: list[str]
    """The versions that you may read, the newest first: those of your teams' runs, and the deployed one."""
    deployed: bool
    """Whether this server has its code, so that a run can start."""
    doc: str
    """Its author's description: data, never markup."""

    @classmethod
    def from_spec(cls, known: KnownAgent, spec: PlanSpec) -> Self:
        return cls(
            name=known.name, version=spec.version, versions=list(specs_of(known)), deployed=known.here is not None,
            doc=spec.doc or known.doc,
        )  # fmt: skip


class AgentPage(ApiSchema):
    """Every agent that you may see or start, by name."""

    items: list[AgentSummary]
    """The agents."""


class AgentStep(ApiSchema):
    """One step of an agent."""

    example: ClassVar = {
        "name": "pay", "title": "Pay the refund", "kind": "effect", "doc": "Pay the money back.",
        "reads": ["proposal"], "writes": ["payment"], "undo": "cancel_payment", "irreversible": False,
        "idempotent": False, "guarded": True, "policy": "", "allows": [], "edits": [], "on_reject": "", "waits": True,
    }  # fmt: skip

    name: str
    """Its name."""
    title: str
    """Its title for people."""
    kind: Annotated[str, one_of(("step", "effect", "gate"))]
    """Its kind."""
    doc: str
    """Its author's description: data, never markup."""
    reads: list[str]
    """The fields of the state that it reads."""
    writes: list[str]
    """The fields that it writes, if known."""
    undo: str
    """For an effect: what undoes it."""
    irreversible: bool
    """For an effect: whether it cannot be undone."""
    idempotent: bool
    """For an effect: whether it may be performed twice with the same key."""
    guarded: bool
    """For an effect: whether it needs a gate's approval."""
    policy: str
    """For a gate: the policy that says who must approve."""
    allows: list[str]
    """For a gate: the effects that an approval allows."""
    edits: list[str]
    """For a gate: the fields that people may edit."""
    on_reject: str
    """For a gate: the step that a rejection goes back to."""
    waits: bool
    """For a gate: whether the run waits at it, or goes on with what does not depend on the decision."""


class AgentHead(AgentSummary):
    """An agent in one version, with its steps."""

    steps: list[AgentStep]
    """Its steps, in the order in which they are defined."""


class AgentDetail(AgentHead):
    """An agent in one version: its steps, and the schema of its state."""

    example: ClassVar = {"state_schema": {"type": "object"}}

    state_schema: dict[str, object]
    """The JSON Schema of its state, as canonical JSON."""


class AgentVersion(ApiSchema):
    """The version to read."""

    example: ClassVar = {"version": "1"}

    version: str = Field("", pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]{0,39})?$")
    """One of `versions`; without it, the newest."""


@router.get("", response=AgentPage, summary="List agents")
def list_agents(request: HttpRequest) -> HttpResponse:
    """Return the agents whose runs you may see, and those that you may start, by name."""
    return answer_json(AgentPage(items=[AgentSummary.from_spec(agent, agent.spec) for agent in known_to(request)]))


@router.get("/{agent}", response=AgentDetail, summary="Read an agent")
def get_agent(request: HttpRequest, agent: AgentName, asked: Query[AgentVersion]) -> HttpResponse:
    """Return one agent in one version, as its plan says."""
    found = known_to(request, agent)
    specs = specs_of(found[0]) if found else {}
    spec = (specs.get(asked.version) if asked.version else found[0].spec) if found else None
    if spec is None:
        raise Http404("No such agent")
    head = AgentHead.model_validate({**AgentSummary.from_spec(found[0], spec).model_dump(), "steps": spec.steps})
    return answer_json(head, state_schema=encode_canonical(spec.state_schema))


def specs_of(known: KnownAgent) -> dict[str, PlanSpec]:
    """Map each version to its newest plan; the deployed version comes first."""
    found = {known.spec.version: known.spec}
    for plan in known.plans:
        if plan.version not in found:
            found[plan.version] = spec_of(plan)
    return found


OWN = "-"  # no agent's name


class StepBody(Order):
    """One step of a plan."""

    example: ClassVar = {
        "name": "wire", "kind": "effect", "title": "Wire it", "doc": "Wire the money.", "reads": ["payment"],
        "writes": ["receipt"], "code_hash": "", "reads_world": False, "undo": "cancel_wire", "irreversible": False,
        "idempotent": True, "guarded": True, "action": "", "responds": "", "policy": "payouts", "allows": ["wire"],
        "edits": ["payment"], "on_reject": "draft", "on_expire": "", "waits": True, "feedback": "", "jumps": [],
        "ends": False, "retry": 3, "backoff": 1.0, "loop_guard": 0,
    }  # fmt: skip

    name: str = Field(min_length=1, max_length=100)
    """Its name."""
    kind: Annotated[str, one_of(("step", "effect", "gate"))] = Field("step", pattern="^(step|effect|gate)$")
    """Its kind."""
    title: str = Field(default_of("title"), max_length=100)
    """Its title for people; empty: made from its name."""
    doc: str = Field("", max_length=2000)
    """What it does, for people."""
    reads: list[str] = Field([], max_length=500)
    """The fields of the state that it reads."""
    writes: list[str] = Field(default_of("writes"), max_length=500)
    """The fields that it writes."""
    code_hash: str = Field("", pattern="^([0-9a-f]{2}){0,64}$")
    """A hash of its code, in hex. If the hash and what the step reads are unchanged, its earlier result is reused after
    a rewind; without a hash it always runs."""
    reads_world: bool = default_of("reads_world")
    """Whether it calls an external system."""
    undo: str = Field(default_of("undo"), max_length=100)
    """For an effect: what undoes it."""
    irreversible: bool = default_of("irreversible")
    """For an effect: whether it cannot be undone."""
    idempotent: bool = default_of("idempotent")
    """For an effect: whether it may be sent twice with the same key."""
    guarded: bool = default_of("guarded")
    """For an effect: whether a gate must allow it."""
    action: str = Field(default_of("action"), max_length=100)
    """For an effect that performs several actions: the field that names the next one."""
    responds: str = Field(default_of("responds"), max_length=100)
    """For an effect: the field that receives a person's answer."""
    policy: str = Field("", pattern=POLICY)
    """For a gate: the policy by which people decide."""
    allows: list[str] = Field(default_of("allows"), max_length=200)
    """For a gate: the effects that an approval allows."""
    edits: list[str] = Field(default_of("edits"), max_length=500)
    """For a gate: the fields that people may edit."""
    on_reject: str = Field(default_of("on_reject"), max_length=100)
    """For a gate: the step that a rejection goes back to."""
    on_expire: str = Field(default_of("on_expire"), max_length=100)
    """For a gate: the step to go on with when nobody decides in time."""
    waits: bool = default_of("waits")
    """For a gate: whether the run waits at it. Else it goes on with what does not depend on the decision."""
    feedback: str = Field("", max_length=100)
    """For a gate: the list field that receives people's feedback."""
    jumps: list[str] = Field(default_of("jumps"), max_length=200)
    """Steps that it may go to instead of the next one."""
    ends: bool = False
    """Whether it may end the run."""
    retry: int = Field(default_of("retry"), ge=0, le=1000)
    """Further attempts after a failure."""
    backoff: float = Field(default_of("backoff"), ge=0, le=86400)
    """Seconds before the second attempt; doubles."""
    loop_guard: int = Field(default_of("loop_guard"), ge=0, le=10**6)
    """After how many executions people are asked; 0: never."""

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
    """The JSON Schema of its state: an object with a property for each field."""
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


@router.post("/{agent}/versions", auth=START, response={201: Registered}, summary="Register a version")
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

    asking.check_plan(token_of(request), spec.steps)

    def do() -> HttpResponse:
        plan = outside.register(spec, teams=teams, by=actor_of(request))
        return answer_json(Registered.from_orm(plan), http_status=201)

    return do_once(request, key, do)


tools = Router(tags=["tools"], auth=require_scope(TokenScope.READ))


class RegisteredTool(ApiSchema):
    """A tool that people registered, in the version that counts for new gates."""

    example: ClassVar = {
        "team": "Support", "name": "bank.wire", "version": 1, "title": "Wire money", "arguments": SCHEMA,
        "pinned": ["/amount"], "risk": "high", "irreversible": True, "undo": "",
    }  # fmt: skip

    team: str = Field(validation_alias="team.name")
    """The team that it is registered for."""
    name: str
    """The name that actions give in `tool`."""
    version: int
    """Each change makes a new version."""
    title: str
    """The title that reviewers read."""
    arguments: dict[str, Any] = Field(validation_alias="schema")
    """The JSON Schema of its arguments; arguments that do not fit are refused."""
    pinned: list[str]
    """JSON Pointers to arguments that are shown first and never folded."""
    risk: Annotated[str, one_of(Gate.Risk)]
    """Actions with this tool have at least this risk."""
    irreversible: bool
    """Whether it cannot be undone."""
    undo: str
    """How to undo it, for people; empty: unknown."""


class ToolPage(Page):
    """Some registered tools."""

    items: list[RegisteredTool]
    """The tools."""


@tools.get("", response=ToolPage, summary="List registered tools")
def list_tools(request: HttpRequest, asked: Query[Paging]) -> HttpResponse:
    """Return the tools that people registered for your teams.

    A gate whose policy demands registered tools may ask for no others.
    """
    found = Tool.objects.in_use().filter(team__in=seen_by(reader_of(request)).values("pk"), pk__gt=asked.place)
    return ToolPage.answer_rows(found.select_related("team").order_by("pk"), asked)
