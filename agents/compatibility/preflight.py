"""Gives approvals' preflight the facts about the agents' code; registered there, since it may not import agents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.utils import timezone
from pydantic import ValidationError

from agents.definition import environment, fields, registry, upcast
from agents.definition.agent import Agent
from agents.definition.registered import RegisteredAgent
from agents.definition.upcast import UpcastPath, version_key
from agents.errors import ConfigRefused
from agents.models import Client
from agents.remote.reach import MISSED
from agents.runner import version_upgrade
from approvals.gates import preflight_facts
from approvals.preflight import AgentCode, EnvironmentFacts, Library, RemoteProgram, Takeover, UnknownCode
from approvals.presentation.drawing.times import lasting
from checkpoints.errors import ValueRefused
from checkpoints.models import Plan, Run
from checkpoints.runs.plans import spec_of
from checkpoints.store import Snapshot

from . import edited_states

MISSING = "missing"  # pydantic's word for a required field that is not there


def register() -> None:
    """Register `code_of`. Called once, when the apps are ready."""
    preflight_facts.register(code_of)


def code_of(run: Run, plan: Plan, snapshot: Snapshot | None, steps: Iterable[str]) -> AgentCode | UnknownCode:
    """Return the facts about the code with which the run would go on at one of these steps of the plan."""
    name, version = plan.agent, plan.version
    if plan.external:
        return _outside(run, plan, snapshot)
    known = registry.agents()
    versions = [each for (agent, _), each in known.items() if agent == name]
    if not versions:
        return UnknownCode(_unknown(name))
    mine = known.get((name, version))
    if mine is not None and mine.digest == bytes(plan.digest):
        faults, doubts = _fits(mine.agent, snapshot)
        now = _environment(run, mine.agent)
        return AgentCode(agent=name, version=version, deployed=True, faults=faults, doubts=doubts, environment=now)
    if mine is not None:
        return AgentCode(agent=name, version=version, changed=True)
    return _gone(run, plan, snapshot, max(versions, key=lambda each: version_key(each.spec.version)), steps)


def _unknown(name: str) -> str:
    """Say why nothing is known about the agent's code."""
    if faults := registry.faults():
        return f"The code of {name} could not be read here. {' '.join(faults)}"
    return f"The web server was started without {name}: add its module to HOLDPOINT_AGENTS and restart."


def _outside(run: Run, plan: Plan, snapshot: Snapshot | None) -> AgentCode | UnknownCode:
    """Return the facts about an external agent: how its state fits, and whether its program was heard of lately."""
    known = edited_states.known_agent(plan.pk)
    if known is None:
        return UnknownCode(f"An external program registered {plan}, but its plan no longer exists.")
    faults, doubts = _fits(known.agent, snapshot)
    program = program_of(run)
    return AgentCode(
        agent=plan.agent, version=plan.version, deployed=True, faults=faults, doubts=doubts, program=program
    )


def program_of(run: Run) -> RemoteProgram:
    """Return the external program that works on the run, and when it was last heard of."""
    client = Client.objects.filter(run=run).first()
    if client is None:
        return RemoteProgram(missed=True, heard=lasting(timezone.now() - run.created_at))
    silent = timezone.now() - client.heard_at
    return RemoteProgram(name=client.name, heard=lasting(silent), missed=silent > MISSED, deferred=client.deferred)


def _gone(run: Run, plan: Plan, snapshot: Snapshot | None, newest: RegisteredAgent, steps: Iterable[str]) -> AgentCode:
    """Return the facts about a version that is gone: steps that the newest lacks, and a version that takes the run."""
    names = [step.name for step in spec_of(plan).steps]
    way = registry.way_of(plan)
    return AgentCode(
        agent=plan.agent,
        version=plan.version,
        newest=newest.spec.version,
        lacks=tuple(upcast.missing(newest.spec, names)),
        takeover=_takeover(run, names, snapshot, way, steps) if way else None,
        environment=_environment(run, way.to.agent) if way else None,
    )


def _takeover(
    run: Run, names: Iterable[str], snapshot: Snapshot | None, way: UpcastPath, steps: Iterable[str]
) -> Takeover:
    return Takeover(
        version=way.to.spec.version,
        upcasters=tuple(each.name for each in way.upcasters),
        renamed=tuple(way.renamed(names).items()),
        lacks=tuple(way.lacks(steps)),
        fault=version_upgrade.fault(run, way, snapshot) if snapshot else "",
    )


def _fits(agent: type[Agent], snapshot: Snapshot | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return (fields that no step could read, faults of the state as a whole only), each with its place."""
    if snapshot is None:
        return (), ()
    try:
        fields.normalised(agent.State, snapshot.state)
    except ValidationError as error:
        told = tuple(f"{each['pointer'] or '/'}: {each['message']}" for each in fields.errors_of(error))
        wanting = [each for each in error.errors() if each["type"] == MISSING and len(each["loc"]) == 1]
        missing = [f"/{each['loc'][0]}: {each['msg']}" for each in wanting]
        faults = (*_unreadable(agent, snapshot.state), *missing)
        return (faults, ()) if faults else ((), told)
    return (), ()


def _unreadable(agent: type[Agent], state: dict[str, Any]) -> list[str]:
    found = []
    for name in state:
        try:
            if name in agent.State.model_fields:
                fields.read(agent.State, name, state)
        except ValueRefused as error:
            found.append(str(error))
    return found


def _environment(run: Run, agent: type[Agent]) -> EnvironmentFacts:
    """Compare the run's recorded environment with the present one."""
    was = environment.recorded(run)
    before = was.get("libraries", {})
    libraries = tuple(
        Library(name=name, recorded=before.get(name, ""), now=environment.version(name)) for name in agent.libraries
    )
    try:
        config = environment.config_for(run, agent)
    except ConfigRefused as error:
        return EnvironmentFacts(configured=True, fault=str(error), libraries=libraries)
    if config is None:
        return EnvironmentFacts(libraries=libraries)
    now, then = config.model_dump(mode="json", by_alias=False), was.get("config", {})
    changed = [name for name in {**then, **now} if name not in then or name not in now or then[name] != now[name]]
    recorded = "config" in was
    return EnvironmentFacts(configured=True, recorded=recorded, changed=tuple(changed), libraries=libraries)
