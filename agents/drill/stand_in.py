"""Makes a copy of the agent under the drill's own version, which no worker of the installation serves."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import cast

from agents.definition import fields, registry
from agents.definition.agent import Agent, AgentType
from agents.definition.plan_builder import plan_of
from agents.definition.registered import RegisteredAgent
from agents.effects.http import trusted

MARK = "-drill"
LATE = ("agents.moves.rewind", "agents.runner.engine", "httpcore", "psycopg_pool")  # imported at their first use
LONGEST = 40  # characters of a version


def drill_version_of(known: RegisteredAgent) -> RegisteredAgent:
    """Return the agent under the drill's version. Raises AgentError."""
    version = known.spec.version[: LONGEST - len(MARK)] + MARK
    body = {"version": version, "__module__": known.agent.__module__, "__doc__": known.agent.__doc__}
    agent = cast(type[Agent], AgentType(known.agent.__name__, (known.agent,), body))
    return RegisteredAgent(agent, plan_of(agent))


@cache
def others(name: str) -> tuple[RegisteredAgent, ...]:
    """Return the other agents that this process knows, in their newest versions, for the runs that a step starts."""
    names = sorted({word for word, _ in registry.agents()} - {name})
    return tuple(drill_version_of(registry.agent_named(name)) for name in names)


def warm(known: RegisteredAgent) -> None:
    """Import modules and build adapters in this process, so that its children need not each do so."""
    others(known.spec.agent)
    for name in LATE:
        import_module(name)
    trusted()
    for name in known.agent.State.model_fields:
        fields.adapter(known.agent.State, name)
        fields.item_adapter(known.agent.State, name)
