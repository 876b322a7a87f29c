"""Upcasters: upgrade a run whose version is gone to a newer one.

A class method marked @upcast("1") turns a state of version 1 into one of the version of the class that holds it, and
maps the old names of steps to new ones. Upcasters chain: one from 1 to 2 and one from 2 to 3 upgrade a run from 1 to 3.
A run whose own version is registered stays with it, so that old and new run side by side; one whose version is gone is
taken by the newest version that a chain leads to. Pure: classes and states in, states out.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from agents.errors import AgentError, FieldError, UpcastFailed
from checkpoints.errors import ValueRefused
from checkpoints.models import Plan
from checkpoints.runs.plans import PlanSpec
from checkpoints.values.canonical_json import decode_canonical, encode_canonical
from checkpoints.values.characters import one_line
from checkpoints.values.json_pointer import make_pointer

from . import fields
from .agent import Agent
from .decorators import MARK, Upcast
from .registered import RegisteredAgent


@dataclass(frozen=True)
class Upcaster:
    """A method that turns a state of version `since` into one of version `to`. `steps`: old name -> new name."""

    name: str
    since: str
    to: str
    steps: Mapping[str, str]
    call: Callable[[dict[str, Any]], Any] = field(repr=False)


@dataclass(frozen=True)
class UpcastPath:
    """The upcasters that upgrade a run of version `since` to `to`, in this order."""

    since: str
    to: RegisteredAgent
    upcasters: tuple[Upcaster, ...]

    def step(self, name: str) -> str:
        """Return the step's name in the new version, whether or not that has such a step; "" (the end) stays ""."""
        for upcaster in self.upcasters:
            name = upcaster.steps.get(name, name)
        return name

    def lacks(self, names: Iterable[str]) -> list[str]:
        """List the old steps that the new version does not have."""
        return missing(self.to.spec, names, called=self.step)

    def renamed(self, names: Iterable[str]) -> dict[str, str]:
        """Return old name -> new name of the old steps that were renamed."""
        return {name: self.step(name) for name in names if self.step(name) != name}


def missing(plan: PlanSpec, names: Iterable[str], *, called: Callable[[str], str] = str) -> list[str]:
    """List the names, except "" (the end), that are no step of the plan once mapped by `called`."""
    known = {"", *(step.name for step in plan.steps)}
    return [name for name in names if called(name) not in known]


def way(plan: Plan | PlanSpec, known: Mapping[tuple[str, str], RegisteredAgent]) -> UpcastPath | None:
    """Return the path to the newest version for this plan's runs; None if its own is registered, or none is reached."""
    if (plan.agent, plan.version) in known:
        return None
    found = _ways(plan, known)
    return found[max(found, key=version_key)] if found else None


def way_to(version: str, plan: Plan | PlanSpec, known: Mapping[tuple[str, str], RegisteredAgent]) -> UpcastPath | None:
    """Return the path from this plan to that version, even if its own is registered; None where there is no path."""
    return _ways(plan, known).get(version)


def apply(way: UpcastPath, state: Mapping[str, Any]) -> dict[str, Any]:
    """Upgrade a state to the new version, in normal form; `state` itself is not changed. Raises UpcastFailed."""
    values: Any = decode_canonical(encode_canonical(dict(state)))
    for upcaster in way.upcasters:
        where = f"{upcaster.name}, which brings a state from {upcaster.since} to {upcaster.to},"
        try:
            values = upcaster.call(values)
        except Exception as error:
            raise UpcastFailed(f"{where} raised {one_line(f'{type(error).__name__}: {error}', 300)}") from error
        if not isinstance(values, dict):
            raise UpcastFailed(f"{where} returned {type(values).__name__}; an upcaster returns the whole state")
    return _fitted(way.to, values)


def upcasters_of(agent: type[Agent]) -> list[Upcaster]:
    """List the agent's upcasters, inherited ones included: each leads to the version of the class that holds it."""
    found = []
    for base in agent.__mro__:
        for name, method in vars(base).items():
            upcast = _upcast_of(method)
            if upcast is not None:
                to = base.version if issubclass(base, Agent) and base.name else agent.version
                found.append(Upcaster(name, upcast.version, to, upcast.steps or {}, method.__get__(None, base)))
    return found


def check(agent: type[Agent], plan: PlanSpec) -> None:
    """Refuse an upcaster that could not work. Raises AgentError."""
    seen: set[tuple[str, str]] = set()
    for base in agent.__mro__:
        for name, method in vars(base).items():
            if _upcast_of(method) is not None and not isinstance(method, classmethod):
                raise AgentError(f"{agent.name}.{name} is an upcaster but not a class method; add @classmethod.")
    for upcaster in upcasters_of(agent):
        where = f"{agent.name}.{upcaster.name}"
        if upcaster.since == upcaster.to:
            raise AgentError(f"{where} brings a state from {upcaster.since} to itself; name the older version.")
        if (upcaster.since, upcaster.to) in seen:
            raise AgentError(f"{where} is the second upcaster from {upcaster.since} to {upcaster.to}; keep one.")
        seen.add((upcaster.since, upcaster.to))
        if upcaster.to == agent.version and (gone := missing(plan, upcaster.steps.values())):
            raise AgentError(f"{where} says that a step is now called {gone[0]}, which is not a step of the agent.")


def version_key(version: str) -> list[tuple[int, str]]:
    """Return a key that sorts versions as people do: 10 after 9."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"[._-]", version)]


def _upcast_of(method: Any) -> Upcast | None:
    upcast = getattr(method, MARK, None) or getattr(getattr(method, "__func__", None), MARK, None)
    return upcast if isinstance(upcast, Upcast) else None


def _ways(plan: Plan | PlanSpec, known: Mapping[tuple[str, str], RegisteredAgent]) -> dict[str, UpcastPath]:
    """Return the path to every other registered version that upcasters lead to, by version."""
    mine = {version: agent for (name, version), agent in known.items() if name == plan.agent}
    steps = {
        (upcaster.since, upcaster.to): upcaster for agent in mine.values() for upcaster in upcasters_of(agent.agent)
    }
    chains: dict[str, tuple[Upcaster, ...]] = {plan.version: ()}  # the shortest to each version
    left = deque([plan.version])
    while left:
        at = left.popleft()
        for (since, to), upcaster in steps.items():
            if since == at and to not in chains:
                chains[to] = (*chains[at], upcaster)
                left.append(to)
    return {to: UpcastPath(plan.version, mine[to], chain) for to, chain in chains.items() if to in mine and chain}


def _fitted(to: RegisteredAgent, values: dict[str, Any]) -> dict[str, Any]:
    """Return the state as the new version saves it. Raises UpcastFailed, also for a field that its State lacks."""
    state = to.agent.State
    errors = [
        FieldError(
            pointer=make_pointer(name), message=f"version {to.spec.version} has no such field; drop it, or rename it"
        )
        for name in values
        if name not in state.model_fields
    ]
    try:
        whole = fields.normalised(state, {name: value for name, value in values.items() if name in state.model_fields})
    except ValidationError as error:
        errors = [*fields.errors_of(error), *errors]
    except ValueRefused as error:
        errors.append(FieldError(pointer=error.pointer, message=error.reason))
    if errors:
        raise UpcastFailed(f"The upcast state does not fit version {to.spec.version}", errors)
    return {name: whole[name] for name in whole if name in values}
