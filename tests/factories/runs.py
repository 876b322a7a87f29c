"""A plan, its state and runs of it: find_order, propose, review (a gate), pay and reply (effects)."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from django.contrib.auth.models import Group, User
from pydantic import BaseModel, ValidationError

from approvals.decisions import validators
from approvals.decisions.validators import StateFault
from checkpoints import actors, store
from checkpoints.models import Plan, Run
from checkpoints.runs import plans
from checkpoints.runs.plans import PlanSpec, StepSpec
from checkpoints.values import artifacts

from .people import make_team, unique


class Proposal(BaseModel):
    amount: Decimal
    currency: str = "EUR"
    reply: str = ""
    note: str | None = None


class State(BaseModel):
    order: dict[str, Any] = {}
    proposal: Proposal | None = None
    feedback: list[dict[str, Any]] = []
    payment: dict[str, Any] | None = None
    mailed: bool = False


SCHEMA = State.model_json_schema()
STEPS = (
    StepSpec("find_order", writes=("order",), reads_world=True),
    StepSpec("propose", reads=("order", "feedback"), writes=("proposal",)),
    StepSpec(
        "review",
        kind="gate",
        reads=("order", "proposal"),
        allows=("pay", "reply"),
        edits=("proposal",),
        on_reject="propose",
        feedback="feedback",
    ),
    StepSpec(
        "pay", kind="effect", reads=("order", "proposal"), writes=("payment",), guarded=True, undo="cancel_payment"
    ),
    StepSpec(
        "reply", kind="effect", reads=("proposal", "payment"), writes=("mailed",), guarded=True, irreversible=True
    ),
)


def make_spec(agent: str = "", *, steps: tuple[StepSpec, ...] = STEPS, version: str = "1") -> PlanSpec:
    """Make the plan of an agent of these steps; its name begins with "robo" unless given."""
    return PlanSpec(agent or unique("robo"), version, state_schema=SCHEMA, steps=steps)


def make_plan(spec: PlanSpec | None = None) -> Plan:
    """Store a plan. One of a new name is put there at once: nobody else can have stored it."""
    if spec:
        return plans.keep(spec)
    new = make_spec()
    return Plan.objects.create(agent=new.agent, version=new.version, digest=new.digest, body=new.body)


def make_state(**fields: Any) -> dict[str, Any]:
    proposal = {"amount": "120.00", "currency": "EUR", "reply": "Dear Marit, here you are.", "note": None}
    state = {"order": {"number": "A-1"}, "proposal": proposal, "feedback": [], "payment": None, "mailed": False}
    return state | fields


def make_run(
    *,
    team: Group | None = None,
    plan: Plan | None = None,
    started_by: User | None = None,
    state: dict[str, Any] | None = None,
    title: str = "Refund for Marit",
    first_step: str = "review",
) -> Run:
    """Start a queued run whose next step is the gate. The files in its state are the team's."""
    team = team or make_team()
    give_files(team, state)
    return store.start(
        plan=plan or make_plan(),
        team=team,
        title=title,
        values=make_state() if state is None else state,
        first_step=first_step,
        by=actors.of_user(started_by) if started_by else actors.SYSTEM,
        started_by=started_by,
    )


def give_files(team: Group, value: Any) -> None:
    """Mark the files in a value as kept for this team."""
    for _, named in artifacts.references(value):
        path = artifacts._path(named[artifacts.MARK])
        if path.exists():
            artifacts._mark(path, team.pk).touch()


def validate(plan: Plan, state: dict[str, Any]) -> tuple[dict[str, Any], list[StateFault]] | None:
    """Return a state of the runs made here as it would run, or its faults; None for other agents' plans."""
    if not re.match(r"robo\b", plan.agent):
        return None
    try:
        return State.model_validate(state).model_dump(mode="json"), []
    except ValidationError as error:
        return state, [
            {"pointer": "".join(f"/{name}" for name in fault["loc"]), "message": fault["msg"]}
            for fault in error.errors()
        ]


validators.register(validate)
