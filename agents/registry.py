"""The agents that this process knows: from HOLDPOINT_AGENTS and from the entry points `holdpoint.agents`.

Declarations are read once a process. `plans` also stores each plan's row, once, and is what a worker may claim.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType
from typing import TypeGuard

from django.conf import settings

from checkpoints import plans as stored_plans
from checkpoints.errors import PlanChanged
from checkpoints.models import Plan, Run
from checkpoints.plans import PlanSpec, digest_of

from . import environment, upcasting
from .base import Agent
from .errors import AgentError, UnknownAgent
from .planning import plan_of
from .upcasting import Versioned, Way, natural


@dataclass(frozen=True)
class Registered:
    """One agent version: its class and its plan."""

    agent: type[Agent]
    spec: PlanSpec
    row: Plan | None = None  # where it was stored by this process

    @property
    def queue(self) -> str:
        """The Celery queue on which its doorbells ring; "" for an agent that lives outside, which no worker serves."""
        return "" if self.row is not None and self.row.external else queue_of(self.spec.agent, self.spec.version)

    @cached_property
    def digest(self) -> bytes:
        """What the plan's row is found by."""
        return digest_of(self.spec)


def queue_of(agent: str, version: str) -> str:
    """One queue per agent version, so that old and new workers live side by side."""
    return f"agent.{agent}.{version}"


@cache
def agents() -> dict[tuple[str, str], Registered]:
    """Every agent version known here, by (name, version). Raises AgentError."""
    found: dict[tuple[str, str], Registered] = {}
    for agent in _declared():
        where = (agent.name, agent.version)
        if where in found and found[where].agent is not agent:
            raise AgentError(
                f"{agent.__module__}.{agent.__name__} and {found[where].agent.__module__}."
                f"{found[where].agent.__name__} are both {agent.name} {agent.version}; raise one's version."
            )
        if where not in found:
            found[where] = Registered(agent, plan_of(agent))
            environment.check(agent, found[where].spec)
            upcasting.check(agent, found[where].spec)
    return found


def named(name: str, version: str = "") -> Registered:
    """The agent of that name, in its newest version unless one is given. Raises UnknownAgent."""
    versions = [key for key in agents() if key[0] == name and version in ("", key[1])]
    if not versions:
        known = ", ".join(sorted({key[0] for key in agents()})) or "none"
        raise UnknownAgent(f"There is no agent named {name}{f' {version}' if version else ''}; known: {known}.")
    return agents()[max(versions, key=lambda key: natural(key[1]))]


def way_of(plan: Versioned) -> Way | None:
    """How runs of a plan whose version is not known here go on in one that is; None where they do not."""
    return upcasting.way(plan, agents())


def queue_for(plan: Versioned) -> str:
    """The queue on which to ring for a run of this plan: that of the version that takes its runs.

    "" for an agent that lives outside.
    """
    if getattr(plan, "external", False):
        return ""
    try:
        way = way_of(plan)
    except AgentError:  # a process whose declarations are wrong still rings for those that can work
        way = None
    return way.to.queue if way else queue_of(plan.agent, plan.version)


def upcasting_agents() -> set[str]:
    """The names of the agents whose runs may be taken over by another version than their own."""
    return {name for (name, _), each in agents().items() if upcasting.upcasters_of(each.agent)}


def queues() -> list[str]:
    """The queues that a worker with these agents serves."""
    return sorted(each.queue for each in agents().values())


def register_all() -> dict[int, Registered]:
    """Store the plan of every agent known here; returns them by their plan row's id. Raises PlanChanged."""
    stored = [replace(each, row=register(each)) for each in agents().values()]
    return {each.row.pk: each for each in stored if each.row is not None}


def register(each: Registered) -> Plan:
    """Store one agent's plan. Raises PlanChanged where runs still wait on other code of the same version."""
    plan = stored_plans.keep(each.spec)
    waiting = Run.objects.filter(plan__agent=plan.agent, plan__version=plan.version, status__in=Run.LIVE).exclude(
        plan=plan
    )
    if waiting.exists():
        raise PlanChanged(
            f"The code of {plan.agent} {plan.version} changed while {waiting.count()} of its runs are under way; "
            "raise the agent's version, or put the old code back until they are done."
        )
    return plan


@cache
def plans() -> dict[int, Registered]:
    """The plans whose runs this process may claim, by plan id; stored on first use."""
    return register_all()


def stored(known: Registered) -> Registered:
    """The same version with its plan's row."""
    return next(each for each in plans().values() if each.agent is known.agent)


def forget() -> None:
    """Read the declarations anew on next use."""
    agents.cache_clear()
    plans.cache_clear()


def _declared() -> list[type[Agent]]:
    homes: list[object] = [import_module(name) for name in settings.HOLDPOINT_AGENTS]
    homes += [point.load() for point in entry_points(group="holdpoint.agents")]
    return [agent for home in homes for agent in _agents_in(home)]


def _agents_in(home: object) -> list[type[Agent]]:
    if not isinstance(home, ModuleType):
        return [home] if _is_agent(home) else []
    return [each for each in vars(home).values() if _is_agent(each)]


def _is_agent(thing: object) -> TypeGuard[type[Agent]]:
    return isinstance(thing, type) and issubclass(thing, Agent) and bool(thing.name)
