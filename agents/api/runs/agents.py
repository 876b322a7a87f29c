"""Agents: those that you may see or start, and one with its steps and the schema of its state."""

from __future__ import annotations

from typing import Annotated, Self

from django.http import Http404, HttpRequest, HttpResponse
from ninja import Query, Router, Schema
from pydantic import Field

from agents.api.protocol import AgentName, answer, needs, one_of
from agents.models import TokenScope
from agents.queries.known_agents import KnownAgent, known_to
from checkpoints.runs.plans import PlanSpec, spec_of
from checkpoints.values.canonical_json import canonical

router = Router(tags=["agents"], auth=needs(TokenScope.READ))


class AgentSummary(Schema):
    """An agent, in its newest version."""

    name: str = Field(description="Its name.", examples=["refunds"])
    version: str = Field(description="The version that this answer describes.", examples=["1"])
    versions: list[str] = Field(
        description="The versions that you may read, the newest first: those of your teams' runs, and the deployed "
        "one.",
        examples=[["2", "1"]],
    )
    deployed: bool = Field(description="Whether this server has its code, so that a run can start.", examples=[True])
    doc: str = Field(description="Its author's description: data, never markup.", examples=["Answer a refund."])

    @classmethod
    def of(cls, known: KnownAgent, spec: PlanSpec) -> Self:
        return cls(
            name=known.name, version=spec.version, versions=list(specs_of(known)), deployed=known.here is not None,
            doc=spec.doc or known.doc,
        )  # fmt: skip


class AgentPage(Schema):
    """Every agent that you may see or start, by name."""

    items: list[AgentSummary] = Field(description="The agents.")


class AgentStep(Schema):
    """One step of an agent."""

    name: str = Field(description="Its name.", examples=["pay"])
    title: str = Field(description="Its title for people.", examples=["Pay the refund"])
    kind: Annotated[str, one_of(("step", "effect", "gate"))] = Field(description="Its kind.", examples=["effect"])
    doc: str = Field(description="Its author's description: data, never markup.", examples=["Pay the money back."])
    reads: list[str] = Field(description="The fields of the state that it reads.", examples=[["proposal"]])
    writes: list[str] = Field(description="The fields that it writes, if known.", examples=[["payment"]])
    undo: str = Field(description="For an effect: what undoes it.", examples=["cancel_payment"])
    irreversible: bool = Field(description="For an effect: whether it cannot be undone.", examples=[False])
    idempotent: bool = Field(
        description="For an effect: whether it may be performed twice with the same key.", examples=[False]
    )
    guarded: bool = Field(description="For an effect: whether it needs a gate's approval.", examples=[True])
    policy: str = Field(description="For a gate: the policy that says who must approve.", examples=[""])
    allows: list[str] = Field(description="For a gate: the effects that an approval allows.", examples=[[]])
    edits: list[str] = Field(description="For a gate: the fields that people may edit.", examples=[[]])
    on_reject: str = Field(description="For a gate: the step that a rejection goes back to.", examples=[""])
    waits: bool = Field(
        description="For a gate: whether the run waits at it, or goes on with what does not depend on the decision.",
        examples=[True],
    )


class AgentHead(AgentSummary):
    """An agent in one version, with its steps."""

    steps: list[AgentStep] = Field(description="Its steps, in the order in which they are defined.")


class AgentDetail(AgentHead):
    """An agent in one version: its steps, and the schema of its state."""

    state_schema: dict[str, object] = Field(
        description="The JSON Schema of its state, as canonical JSON.", examples=[{"type": "object"}]
    )


class AgentVersion(Schema):
    """The version to read."""

    version: str = Field(
        "",
        description="One of `versions`; without it, the newest.",
        pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]{0,39})?$",
        examples=["1"],
    )


@router.get("", response=AgentPage, summary="List agents")
def list_agents(request: HttpRequest) -> HttpResponse:
    """Return the agents whose runs you may see, and those that you may start, by name."""
    return answer(AgentPage(items=[AgentSummary.of(each, each.spec) for each in known_to(request)]))


@router.get("/{agent}", response=AgentDetail, summary="Read an agent")
def get_agent(request: HttpRequest, agent: AgentName, asked: Query[AgentVersion]) -> HttpResponse:
    """Return one agent in one version, as its plan says."""
    found = known_to(request, agent)
    specs = specs_of(found[0]) if found else {}
    spec = (specs.get(asked.version) if asked.version else found[0].spec) if found else None
    if spec is None:
        raise Http404("No such agent")
    head = AgentHead.model_validate({**AgentSummary.of(found[0], spec).model_dump(), "steps": spec.steps})
    return answer(head, state_schema=canonical(spec.state_schema))


def specs_of(known: KnownAgent) -> dict[str, PlanSpec]:
    """Map each version to its newest plan; the deployed version comes first."""
    found = {known.spec.version: known.spec}
    for plan in known.plans:
        if plan.version not in found:
            found[plan.version] = spec_of(plan)
    return found
