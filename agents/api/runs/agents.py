"""Agents: those that you may see or start, and one with its steps and the schema of its state."""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

from django.http import Http404, HttpRequest, HttpResponse
from ninja import Query, Router
from pydantic import Field

from agents.api.protocol import AgentName, ApiSchema, answer_json, one_of, require_scope
from agents.models import TokenScope
from agents.runs.known_agents import KnownAgent, known_to
from checkpoints.runs.plans import PlanSpec, spec_of
from checkpoints.values.canonical_json import encode_canonical

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
