"""The agent under a version of the drill's own: the same code, and no worker of the installation has it."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from agents.definition import fields
from agents.definition.agent import Agent, AgentType
from agents.definition.plan_builder import plan_of
from agents.definition.registered import RegisteredAgent
from agents.effects.http import trusted

MARK = "-drill"
LATE = ("agents.moves.rewind", "agents.runner.engine", "httpcore", "psycopg_pool")  # imported at their first use
LONGEST = 40  # characters of a version


def of(known: RegisteredAgent) -> RegisteredAgent:
    """Return the agent as the drill runs it. Raises AgentError."""
    version = known.spec.version[: LONGEST - len(MARK)] + MARK
    body = {"version": version, "__module__": known.agent.__module__, "__doc__": known.agent.__doc__}
    agent = cast(type[Agent], AgentType(known.agent.__name__, (known.agent,), body))
    return RegisteredAgent(agent, plan_of(agent))


def warm(known: RegisteredAgent) -> None:
    """Build and import in this process what its children would each build and import anew."""
    for name in LATE:
        import_module(name)
    trusted()
    for name in known.agent.State.model_fields:
        fields.adapter(known.agent.State, name)
        fields.item_adapter(known.agent.State, name)
