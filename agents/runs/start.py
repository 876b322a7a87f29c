"""Starting a run: the input is checked whole, by the agent's own model, before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Group
from django.db import transaction
from pydantic import BaseModel, ValidationError

from agents.definition import environment, fields, registry
from agents.definition.agent import Agent
from agents.definition.registered import RegisteredAgent
from agents.errors import FieldError, InputRefused
from agents.ringing import doorbell
from approvals.errors import NoSuchPolicy
from approvals.models import Policy
from approvals.schema import redact
from checkpoints import store
from checkpoints.actors import Actor
from checkpoints.errors import ValueRefused
from checkpoints.models import Run
from checkpoints.runs.plans import PlanSpec
from checkpoints.values.characters import one_line
from checkpoints.values.json_pointer import make_pointer


def start_run(
    agent: str | RegisteredAgent,
    input: Mapping[str, Any],
    *,
    by: Actor,
    team: Group,
    title: str | None = None,
    started_by: Any = None,
    key: str | None = None,
    config: Mapping[str, Any] | None = None,
    thread: str = "",
    within: timedelta | None = None,
    parent: Run | None = None,
    wait_reason: str = "",
    priority: int | None = None,
    number: int | None = None,
) -> Run:
    """Start a run and ring its queue's doorbell after commit; the same key gives the same run.

    `within`: the time after which the run is cancelled if it still lives; the agent's own `lasts` unless given.
    `priority`: from 0, the most urgent, to 9; the agent's own unless given.
    `parent`: the run whose step starts it; `wait_reason`: why it waits for its turn, instead of being
    queued; `number`: its own, where that was drawn before.
    `agent` is a name, of which the newest version runs, or the version itself of an external agent.
    `config` is set over the defaults of the agent's Config; the result is kept with the run, and so are the
    versions of the libraries that the agent declares. Raises UnknownAgent, PlanChanged, and InputRefused or
    ConfigRefused with every error at once.
    """
    known = registry.agent_named(agent) if isinstance(agent, str) else agent
    check_policies(known.spec, team)
    state = validate_input(known.agent.State, input)
    recorded = environment.current(known.agent, config)
    name = titled(known.agent, state) if title is None else title
    try:
        values = fields.whole(state)
        with transaction.atomic():
            run = store.start(
                plan=known.row if known.row is not None else registry.register(known),
                team=team,
                title=one_line(name, 200) or known.spec.agent,
                values=values,
                first_step=known.spec.steps[0].name,
                by=by,
                started_by=started_by,
                key=key,
                environment=recorded,
                thread=thread,
                within=known.agent.lasts if within is None else within,
                parent=parent,
                wait_reason=wait_reason,
                priority=known.agent.priority if priority is None else priority,
                number=number,
            )
            if not wait_reason:
                transaction.on_commit(lambda: doorbell.ring(run.pk, known.queue, run.priority))
    except ValueRefused as error:
        raise InputRefused([FieldError(pointer=error.pointer, message=error.reason)]) from error
    return run


def check_policies(plan: PlanSpec, team: Group) -> None:
    """Raise InputRefused if the team has policies, and none of them for one of the plan's gates."""
    faults = []
    for name in dict.fromkeys(step.policy for step in plan.steps if step.kind == "gate"):
        try:
            Policy.objects.expect(name, team=team)
        except NoSuchPolicy as error:
            faults.append(FieldError(pointer="", message=str(error)))
    if faults:
        raise InputRefused(faults)


def titled(agent: type[Agent], state: BaseModel) -> str:
    """Return the agent's title of a run, without the secrets of its input."""
    veil = fields.veil(agent.State)
    title = agent.title(state)
    return str(redact.scrubbed(title, veil.words(fields.whole(state)))) if veil else title


def validate_input(state: type[BaseModel], input: Any) -> BaseModel:
    """Return the input as an instance of the agent's state. Raises InputRefused with every error at once."""
    if not isinstance(input, Mapping):
        raise InputRefused([FieldError(pointer="", message="the input must be a JSON object")])
    strange = [name for name in input if name not in state.model_fields]
    errors = [FieldError(pointer=make_pointer(name), message="the agent's state has no such field") for name in strange]
    try:
        fields.veil(state).restore(dict(input), {})  # refuses placeholders, which stand for no secret yet
    except ValueRefused as error:
        raise InputRefused([FieldError(pointer=error.pointer, message=error.reason)]) from error
    try:
        made = state.model_validate({k: v for k, v in input.items() if k in state.model_fields}, by_name=True)
    except ValidationError as error:
        raise InputRefused([*fields.errors_of(error), *errors]) from error
    if errors:
        raise InputRefused(errors)
    return made
